package sojourn

/*
#include <sojourn.h>
*/
import "C"

import (
	"runtime"
	"time"
)

// Impairments of a link, behind its queue. The zero value has no effect.
type Impairments struct {
	// Jitter varies the delay uniformly by plus or minus this time.
	Jitter time.Duration
	// JitterReorders is true if jitter may reorder packets.
	JitterReorders bool
	// Loss is the probability that a packet is lost.
	Loss float64
	// Reorder is the probability that a packet is sent without the delay of the link.
	Reorder float64
}

// Link is a discipline, a rate, a one-way delay, and impairments.
type Link struct {
	handle *C.struct_sj_link
	packet C.struct_sj_packet
}

// NewLink creates an idle link of rate bit/s at time 0. Without limit in the text, the queue holds at
// most 250 ms.
func NewLink(text string, rate uint64, delay time.Duration, seed uint64, i Impairments) (*Link, error) {
	a := newArguments(text)
	defer a.free()
	c := C.struct_sj_impairments{
		size: C.sizeof_struct_sj_impairments, jitter_ns: C.uint64_t(i.Jitter),
		loss: C.double(i.Loss), reorder: C.double(i.Reorder),
	}
	if i.JitterReorders {
		c.jitter_reorders = 1
	}
	handle := C.sj_link_new(
		a.text, C.uint64_t(rate), C.uint64_t(delay), C.uint64_t(seed), &c, &a.error[0], 256)
	if handle == nil {
		return nil, a.failure(Invalid)
	}
	return newLink(handle), nil
}

func newLink(handle *C.struct_sj_link) *Link {
	l := &Link{handle: handle}
	runtime.SetFinalizer(l, (*Link).Close)
	return l
}

// LoadLink creates the link that Save returned as a snapshot. Bytes that are damaged, or of another
// version of the library, return an error with the code BadSnapshot. Load only snapshots that you
// wrote.
func LoadLink(snapshot []byte) (*Link, error) {
	var handle *C.struct_sj_link
	err := loaded(snapshot, func(start *C.uint8_t, count C.size_t, a *arguments) C.int {
		return C.sj_link_load(&handle, start, count, &a.error[0], C.size_t(len(a.error)))
	})
	if err != nil {
		return nil, err
	}
	return newLink(handle), nil
}

// Close frees the link. Further calls return an error; Close may be called twice.
func (l *Link) Close() {
	C.sj_link_free(l.handle)
	l.handle = nil
	runtime.SetFinalizer(l, nil)
}

// Push enqueues a packet that arrives at now. Take dropped packets by NextUndelivered.
func (l *Link) Push(now time.Duration, p *Packet) error {
	p.toC(&l.packet)
	code := C.sj_link_push(l.handle, C.uint64_t(now), &l.packet)
	runtime.KeepAlive(l)
	return check(code)
}

// Poll writes the next packet that has reached the far end by now into p. It returns false if there
// is none.
func (l *Link) Poll(now time.Duration, p *Packet) (bool, error) {
	l.packet.size = C.sizeof_struct_sj_packet
	code := C.sj_link_poll(l.handle, C.uint64_t(now), &l.packet)
	runtime.KeepAlive(l)
	return taken(code, p, &l.packet)
}

// NextUndelivered writes the next packet that was dropped or lost into p. Call it after Push and Poll
// until it returns false.
func (l *Link) NextUndelivered(p *Packet) (bool, error) {
	l.packet.size = C.sizeof_struct_sj_packet
	code := C.sj_link_next_undelivered(l.handle, &l.packet)
	runtime.KeepAlive(l)
	return taken(code, p, &l.packet)
}

// NextPoll is the next time to call Poll; Never while no packet is on the link. May be early.
func (l *Link) NextPoll() time.Duration {
	defer runtime.KeepAlive(l)
	return duration(C.sj_link_next_poll(l.handle))
}

// Change sets rate and delay at now. A rate of 0 stops the link.
func (l *Link) Change(now time.Duration, rate uint64, delay time.Duration) error {
	code := C.sj_link_change(l.handle, C.uint64_t(now), C.uint64_t(rate), C.uint64_t(delay))
	runtime.KeepAlive(l)
	return check(code)
}

// Save returns a snapshot with the packets, from which LoadLink continues on any machine: the same
// packets, with their IDs, arrive and are dropped at the same times.
func (l *Link) Save() ([]byte, error) {
	defer runtime.KeepAlive(l)
	return saved(func(start **C.uint8_t, count *C.size_t, a *arguments) C.int {
		return C.sj_link_save(l.handle, start, count, &a.error[0], C.size_t(len(a.error)))
	})
}
