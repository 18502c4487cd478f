package sojourn

/*
#include <sojourn.h>
*/
import "C"

import (
	"math"
	"runtime"
	"time"
)

// Simulation runs a scenario, in steps or in one go.
type Simulation struct {
	handle *C.struct_sj_sim
}

func newSimulation(handle *C.struct_sj_sim) *Simulation {
	s := &Simulation{handle}
	runtime.SetFinalizer(s, (*Simulation).Close)
	return s
}

// NewSimulation creates a simulation at time 0 of a scenario, in TOML or JSON.
func NewSimulation(scenario string) (*Simulation, error) {
	a := newArguments(scenario)
	defer a.free()
	handle := C.sj_sim_new(a.text, &a.error[0], C.size_t(len(a.error)))
	if handle == nil {
		return nil, a.failure(Invalid)
	}
	return newSimulation(handle), nil
}

// LoadSimulation creates the simulation that Save returned as a snapshot. Bytes that are damaged, or
// of another version of the library, return an error with the code BadSnapshot. Load only snapshots
// that you wrote.
func LoadSimulation(snapshot []byte) (*Simulation, error) {
	var handle *C.struct_sj_sim
	err := loaded(snapshot, func(start *C.uint8_t, count C.size_t, a *arguments) C.int {
		return C.sj_sim_load(&handle, start, count, &a.error[0], C.size_t(len(a.error)))
	})
	if err != nil {
		return nil, err
	}
	return newSimulation(handle), nil
}

// Close frees the simulation. Further calls return an error; Close may be called twice.
func (s *Simulation) Close() {
	C.sj_sim_free(s.handle)
	s.handle = nil
	runtime.SetFinalizer(s, nil)
}

// RunUntil simulates everything before until. A time after the end, such as Never, is the end.
func (s *Simulation) RunUntil(until time.Duration) error {
	at := C.uint64_t(until)
	if until == Never {
		at = math.MaxUint64
	}
	code := C.sj_sim_run_until(s.handle, at)
	runtime.KeepAlive(s)
	return check(code)
}

// Now is the time up to which everything has happened; Never if the simulation is closed.
func (s *Simulation) Now() time.Duration {
	defer runtime.KeepAlive(s)
	return duration(C.sj_sim_now(s.handle))
}

// Result returns the result so far as JSON, with the keys of "sojourn run --json".
func (s *Simulation) Result() (string, error) {
	defer runtime.KeepAlive(s)
	var a arguments
	json := C.sj_sim_result(s.handle, &a.error[0], C.size_t(len(a.error)))
	if json == nil {
		return "", a.failure(Invalid)
	}
	return C.GoString(json), nil
}

// Save returns a snapshot, from which LoadSimulation continues on any machine, with the same results
// to the last byte.
func (s *Simulation) Save() ([]byte, error) {
	defer runtime.KeepAlive(s)
	return saved(func(start **C.uint8_t, count *C.size_t, a *arguments) C.int {
		return C.sj_sim_save(s.handle, start, count, &a.error[0], C.size_t(len(a.error)))
	})
}
