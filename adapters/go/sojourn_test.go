package sojourn

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

func code(err error) int {
	var e *Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code
}

func Example() {
	link, err := NewLink("fq_codel(variant=linux)", 10_000_000, 25*time.Millisecond, 1, Impairments{})
	if err != nil {
		panic(err)
	}
	defer link.Close()
	if err := link.Push(0, &Packet{Len: 1250, ECN: ECT0, ID: 7}); err != nil {
		panic(err)
	}
	var p Packet
	for at := link.NextPoll(); at != Never; at = link.NextPoll() {
		for ok, _ := link.Poll(at, &p); ok; ok, _ = link.Poll(at, &p) {
			fmt.Println("packet", p.ID, "arrived at", p.At)
		}
	}
	// Output: packet 7 arrived at 26ms
}

func TestEveryPacketComesBackOnce(t *testing.T) {
	for _, text := range []string{"codel(limit=20p)", "fq_codel(variant=linux,limit=20p)", "pie(limit=20p)"} {
		qdisc, err := NewQdisc(text, 10_000_000, 1)
		if err != nil {
			t.Fatal(err)
		}
		back := map[uint64]int{}
		var p Packet
		take := func(next func(*Packet) (bool, error)) {
			for {
				ok, err := next(&p)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					return
				}
				back[p.ID]++
			}
		}
		now := time.Duration(0)
		for i := uint64(0); i < 500; i++ {
			now += 300 * time.Microsecond
			if err := qdisc.Enqueue(now, &Packet{Len: 1250, Hash: uint32(i % 3), ID: i}); err != nil {
				t.Fatal(err)
			}
			if i%4 == 0 {
				if ok, err := qdisc.Dequeue(now, &p); err != nil || !ok {
					t.Fatal(ok, err)
				}
				if p.Len != 1250 || p.At != now || p.Arrived > now || p.Reason != 0 {
					t.Fatalf("%+v", p)
				}
				back[p.ID]++
			}
			take(qdisc.NextDropped)
		}
		packets, bytes, err := qdisc.Backlog()
		if err != nil || bytes != 1250*packets || uint64(len(back))+packets != 500 {
			t.Fatal(text, packets, bytes, len(back), err)
		}
		take(func(p *Packet) (bool, error) { return qdisc.Dequeue(now, p) })
		take(qdisc.NextDropped)
		if len(back) != 500 || qdisc.ReadyAt() != Never {
			t.Fatal(text, len(back), qdisc.ReadyAt())
		}
		qdisc.Close()
	}
}

func TestAnImpairedLinkLosesAndDelays(t *testing.T) {
	impairments := Impairments{Loss: 0.2, Jitter: 5 * time.Millisecond, JitterReorders: true}
	link, err := NewLink("droptail", 10_000_000, 20*time.Millisecond, 1, impairments)
	if err != nil {
		t.Fatal(err)
	}
	var p Packet
	lost, delivered, order := 0, 0, uint64(0)
	reordered := false
	for i := uint64(0); i < 200; i++ {
		if err := link.Push(time.Duration(i)*time.Millisecond, &Packet{Len: 1250, ID: i}); err != nil {
			t.Fatal(err)
		}
	}
	for at := link.NextPoll(); at != Never; at = link.NextPoll() {
		if at < 199*time.Millisecond {
			at = 199 * time.Millisecond
		}
		for ok, _ := link.Poll(at, &p); ok; ok, _ = link.Poll(at, &p) {
			delivered++
			reordered = reordered || p.ID < order
			order = p.ID
		}
		for ok, _ := link.NextUndelivered(&p); ok; ok, _ = link.NextUndelivered(&p) {
			lost++
			if p.Reason != 4 {
				t.Fatalf("%+v", p)
			}
		}
	}
	if lost+delivered != 200 || lost < 20 || lost > 60 || !reordered {
		t.Fatal(lost, delivered, reordered)
	}
	if err := link.Change(time.Second, 20_000_000, 0); err != nil {
		t.Fatal(err)
	}
}

// offered pushes packets from first to before last, and returns what comes out as text.
func offered(t *testing.T, link *Link, first, last int) string {
	var log strings.Builder
	var p Packet
	for i := first; i < last; i++ {
		now := time.Duration(i) * time.Millisecond / 2
		packet := Packet{Len: 1250, Hash: uint32(i % 3), ECN: ECT0, ID: 1<<63 | uint64(i)}
		if err := link.Push(now, &packet); err != nil {
			t.Fatal(err)
		}
		for _, next := range []func(*Packet) (bool, error){
			func(p *Packet) (bool, error) { return link.Poll(now, p) }, link.NextUndelivered,
		} {
			for ok, _ := next(&p); ok; ok, _ = next(&p) {
				fmt.Fprintln(&log, p)
			}
		}
	}
	return log.String()
}

func TestALinkOfASnapshotContinuesInTheSameWay(t *testing.T) {
	impairments := Impairments{Loss: 0.1, Jitter: 5 * time.Millisecond, JitterReorders: true}
	first, err := NewLink("fq_codel(limit=50p)", 10_000_000, 20*time.Millisecond, 1, impairments)
	if err != nil {
		t.Fatal(err)
	}
	offered(t, first, 0, 300)
	snapshot, err := first.Save()
	if err != nil {
		t.Fatal(err)
	}
	second, err := LoadLink(snapshot)
	if err != nil || second.NextPoll() != first.NextPoll() || first.NextPoll() == Never {
		t.Fatal(err)
	}
	var logs [2]string
	var ends [2][]byte
	for i, link := range []*Link{first, second} {
		logs[i] = offered(t, link, 300, 600)
		if ends[i], err = link.Save(); err != nil {
			t.Fatal(err)
		}
		link.Close()
	}
	if logs[0] != logs[1] || len(logs[0]) < 5000 || !bytes.Equal(ends[0], ends[1]) {
		t.Fatal("the restored link differs")
	}
	if _, err := first.Save(); err == nil {
		t.Fatal("a closed link is saved")
	}
	if _, err := LoadSimulation(snapshot); code(err) != BadSnapshot {
		t.Fatal(err)
	}
	snapshot[len(snapshot)/2] ^= 1
	for _, wrong := range [][]byte{snapshot, snapshot[:100], {}, nil} {
		if _, err := LoadLink(wrong); code(err) != BadSnapshot || !strings.Contains(err.Error(), "snapshot: ") {
			t.Fatal(err)
		}
	}
}

func TestErrorsHaveCodesAndTexts(t *testing.T) {
	if _, err := NewQdisc("codle", 1, 1); err == nil || !strings.Contains(err.Error(), `did you mean "codel"?`) {
		t.Fatal(err)
	}
	if _, err := NewLink("codel", 1000, 0, 1, Impairments{Loss: 2}); code(err) != Invalid {
		t.Fatal(err)
	}
	qdisc, err := NewQdisc("codel", 1_000_000, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := qdisc.Enqueue(5, &Packet{Len: 1 << 30}); code(err) != BadLength {
		t.Fatal(err)
	}
	if err := qdisc.Enqueue(5, &Packet{Len: 100}); err != nil {
		t.Fatal(err)
	}
	if _, err := qdisc.Dequeue(4, &Packet{}); code(err) != Earlier || err.Error() != "sojourn: the time is earlier than in a previous call" {
		t.Fatal(err)
	}
	qdisc.Close()
	qdisc.Close()
	if err := qdisc.Enqueue(5, &Packet{Len: 100}); err == nil || qdisc.ReadyAt() != Never {
		t.Fatal("a closed discipline accepts packets")
	}
}

func TestTheGarbageCollectorFreesWhatIsNotClosed(t *testing.T) {
	for i := 0; i < 2000; i++ {
		qdisc, err := NewQdisc("droptail", 1_000_000, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := qdisc.Enqueue(1, &Packet{Len: 100}); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
}

const scenario = "duration = \"3s\"\nwarmup = \"1s\"\n" +
	"[links.up]\nrate = \"10mbit\"\nqdisc = { name = \"red\", limit = \"100p\" }\n" +
	"[[flows]]\nname = \"bulk\"\ncount = 2\npath = [\"up\"]\nrtt = \"20ms\"\n"

func TestASnapshotContinuesInTheSameWay(t *testing.T) {
	first, err := NewSimulation(scenario)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.RunUntil(1500 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	snapshot, err := first.Save()
	if err != nil {
		t.Fatal(err)
	}
	second, err := LoadSimulation(snapshot)
	if err != nil || second.Now() != 1500*time.Millisecond {
		t.Fatal(err)
	}
	var results [2]string
	var ends [2][]byte
	for i, s := range []*Simulation{first, second} {
		if err := s.RunUntil(Never); err != nil || s.Now() != 3*time.Second {
			t.Fatal(err)
		}
		if results[i], err = s.Result(); err != nil {
			t.Fatal(err)
		}
		if ends[i], err = s.Save(); err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
	if results[0] != results[1] || !bytes.Equal(ends[0], ends[1]) {
		t.Fatal("the restored simulation differs")
	}
	if _, err := first.Save(); err == nil || first.Now() != Never {
		t.Fatal("a closed simulation is saved")
	}
	snapshot[len(snapshot)/2] ^= 1
	for _, wrong := range [][]byte{snapshot, snapshot[:100], {}, nil} {
		if _, err := LoadSimulation(wrong); code(err) != BadSnapshot || !strings.Contains(err.Error(), "snapshot: ") {
			t.Fatal(err)
		}
	}
	if _, err := NewSimulation("duration = 3"); err == nil || !strings.Contains(err.Error(), "duration: ") {
		t.Fatal(err)
	}
}

func BenchmarkQdisc(b *testing.B) {
	for _, text := range []string{"droptail", "codel", "fq_codel", "pie", "dualpi2"} {
		b.Run(text, func(b *testing.B) {
			qdisc, err := NewQdisc(text, 1_000_000_000, 1)
			if err != nil {
				b.Fatal(err)
			}
			defer qdisc.Close()
			p := Packet{Len: 1250}
			for i := 0; i < 20; i++ {
				qdisc.Enqueue(0, &p)
			}
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				now := time.Duration(i+1) * 10 * time.Microsecond
				p = Packet{Len: 1250, Flow: uint32(i % 7), Hash: uint32(i % 7), ID: uint64(i)}
				qdisc.Enqueue(now, &p)
				qdisc.Dequeue(now, &p)
				for ok, _ := qdisc.NextDropped(&p); ok; ok, _ = qdisc.NextDropped(&p) {
				}
			}
		})
	}
}
