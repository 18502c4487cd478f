// Package sojourn has queue disciplines, links and simulations of the sojourn library: a Qdisc for a
// transmitter of your own, a Link with a rate and a delay, and a Simulation of a scenario. None has a
// clock, I/O or goroutines; your program passes the time in, as a time.Duration since any fixed
// instant.
//
// Install the library by `make capi PREFIX=/usr/local`, so that pkg-config finds it. A discipline is
// in its text form, like "codel(target=15ms)"; "fq_codel" is RFC 8290's, and
// "fq_codel(variant=linux)" is what Linux has.
//
// A Qdisc, a Link or a Simulation may be used by one goroutine at a time. Its memory in C is freed by Close, or by
// the garbage collector.
package sojourn

/*
#cgo pkg-config: sojourn
#include <sojourn.h>
#include <stdlib.h>
*/
import "C"

import (
	"math"
	"runtime"
	"time"
	"unsafe"
)

// Never is a time that never comes: nothing is queued.
const Never time.Duration = math.MaxInt64

// Error is an error of the library.
type Error struct {
	// Code is one of the codes of sojourn.h, such as SJ_EARLIER.
	Code int
	text string
}

func (e *Error) Error() string { return "sojourn: " + e.text }

// Codes of errors.
const (
	Invalid   = C.SJ_INVALID    // an argument is invalid
	Earlier   = C.SJ_EARLIER    // the time is earlier than in a previous call
	BadLength = C.SJ_BAD_LENGTH // a packet has 2^30 bytes or more
	Panicked  = C.SJ_PANICKED   // a call has panicked: a defect of the library

	// BadSnapshot: the bytes are not a snapshot, or one of another version, or damaged.
	BadSnapshot = C.SJ_BAD_SNAPSHOT
)

func check(code C.int) error {
	if code >= 0 {
		return nil
	}
	return &Error{int(code), C.GoString(C.sj_strerror(code))}
}

// ECN is the ECN field of an IP header.
type ECN uint8

// Values of the ECN field. CE is a marked packet.
const (
	NotECT ECN = iota
	ECT1
	ECT0
	CE
)

// Packet is a descriptor. The library does not see the contents: find them by the ID.
type Packet struct {
	// Len is the length in bytes, below 2^30.
	Len uint32
	// Flow is a small number of the flow, for disciplines with a queue per flow.
	Flow uint32
	// Hash of the flow, salted, for hashed queues.
	Hash uint32
	// Source and Destination are keys of the two hosts, for cake.
	Source, Destination uint32
	// Class is the traffic class or the DSCP.
	Class uint16
	// ECN is CE in a packet that was marked.
	ECN ECN
	// Reason why a packet was not delivered: 1 the buffer was full, 2 dropped at enqueue, 3 dropped
	// later, 4 lost on the wire; 0 for others. Set by the library.
	Reason uint8
	// ID is yours: an index or a key of the contents. It comes back once.
	ID uint64
	// Arrived is the time of arrival at the queue, set by the library.
	Arrived time.Duration
	// At is the time at which the packet left the queue, arrived, or was dropped, set by the library.
	At time.Duration
}

func (p *Packet) toC(c *C.struct_sj_packet) {
	*c = C.struct_sj_packet{
		size: C.sizeof_struct_sj_packet, len: C.uint32_t(p.Len), flow: C.uint32_t(p.Flow),
		hash: C.uint32_t(p.Hash), source: C.uint32_t(p.Source),
		destination: C.uint32_t(p.Destination), traffic_class: C.uint16_t(p.Class),
		ecn: C.uint8_t(p.ECN), cookie: C.uint64_t(p.ID),
	}
}

func (p *Packet) fromC(c *C.struct_sj_packet) {
	*p = Packet{
		Len: uint32(c.len), Flow: uint32(c.flow), Hash: uint32(c.hash), Source: uint32(c.source),
		Destination: uint32(c.destination), Class: uint16(c.traffic_class), ECN: ECN(c.ecn),
		Reason: uint8(c.reason), ID: uint64(c.cookie),
		Arrived: time.Duration(c.arrived), At: time.Duration(c.at),
	}
}

// arguments are the parts of a constructor that C sees.
type arguments struct {
	text  *C.char
	error [256]C.char
}

func newArguments(text string) *arguments { return &arguments{text: C.CString(text)} }

func (a *arguments) free() { C.free(unsafe.Pointer(a.text)) }

func (a *arguments) failure(code C.int) error {
	return &Error{int(code), C.GoString(&a.error[0])}
}

func duration(at C.uint64_t) time.Duration {
	if at > math.MaxInt64 {
		return Never
	}
	return time.Duration(at)
}

// Qdisc is a discipline, for a transmitter of your own.
type Qdisc struct {
	handle *C.struct_sj_qdisc
	// packet crosses the border; in the struct it is not allocated for each call.
	packet C.struct_sj_packet
}

// NewQdisc creates an empty discipline for a link of rate bit/s. Its random numbers follow from seed.
func NewQdisc(text string, rate, seed uint64) (*Qdisc, error) {
	a := newArguments(text)
	defer a.free()
	handle := C.sj_qdisc_new(a.text, C.uint64_t(rate), C.uint64_t(seed), &a.error[0], 256)
	if handle == nil {
		return nil, a.failure(Invalid)
	}
	q := &Qdisc{handle: handle}
	runtime.SetFinalizer(q, (*Qdisc).Close)
	return q, nil
}

// Close frees the discipline. Further calls return an error; Close may be called twice.
func (q *Qdisc) Close() {
	C.sj_qdisc_free(q.handle)
	q.handle = nil
	runtime.SetFinalizer(q, nil)
}

// Enqueue enqueues or drops a packet that arrives at now. Take dropped packets by NextDropped.
func (q *Qdisc) Enqueue(now time.Duration, p *Packet) error {
	p.toC(&q.packet)
	code := C.sj_qdisc_enqueue(q.handle, C.uint64_t(now), &q.packet)
	runtime.KeepAlive(q)
	return check(code)
}

// Dequeue writes the next packet to send into p. It returns false if there is none, or a shaper holds
// the packets back until ReadyAt.
func (q *Qdisc) Dequeue(now time.Duration, p *Packet) (bool, error) {
	q.packet.size = C.sizeof_struct_sj_packet
	code := C.sj_qdisc_dequeue(q.handle, C.uint64_t(now), &q.packet)
	runtime.KeepAlive(q)
	return taken(code, p, &q.packet)
}

// NextDropped writes the next dropped packet into p. Call it after Enqueue and Dequeue until it
// returns false.
func (q *Qdisc) NextDropped(p *Packet) (bool, error) {
	q.packet.size = C.sizeof_struct_sj_packet
	code := C.sj_qdisc_next_dropped(q.handle, &q.packet)
	runtime.KeepAlive(q)
	return taken(code, p, &q.packet)
}

func taken(code C.int, p *Packet, c *C.struct_sj_packet) (bool, error) {
	if code == 1 {
		p.fromC(c)
	}
	return code == 1, check(code)
}

// ReadyAt is the time at which to dequeue again after a Dequeue without a packet; Never if the
// discipline is empty.
func (q *Qdisc) ReadyAt() time.Duration {
	defer runtime.KeepAlive(q)
	return duration(C.sj_qdisc_ready_at(q.handle))
}

// Backlog returns the number of packets and bytes in the queue.
func (q *Qdisc) Backlog() (packets, bytes uint64, err error) {
	var p, b C.uint64_t
	code := C.sj_qdisc_backlog(q.handle, &p, &b)
	runtime.KeepAlive(q)
	return uint64(p), uint64(b), check(code)
}
