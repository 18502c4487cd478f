package sojourn

/*
#include <sojourn.h>
*/
import "C"

import "unsafe"

// saved calls one of sj_*_save and returns a copy of the bytes.
func saved(save func(**C.uint8_t, *C.size_t, *arguments) C.int) ([]byte, error) {
	var a arguments
	var start *C.uint8_t
	var count C.size_t
	if code := save(&start, &count, &a); code < 0 {
		return nil, a.failure(code)
	}
	return C.GoBytes(unsafe.Pointer(start), C.int(count)), nil
}

// loaded calls one of sj_*_load with the bytes.
func loaded(snapshot []byte, load func(*C.uint8_t, C.size_t, *arguments) C.int) error {
	var a arguments
	start := new(byte) // an empty slice has no first byte
	if len(snapshot) > 0 {
		start = &snapshot[0]
	}
	if code := load((*C.uint8_t)(unsafe.Pointer(start)), C.size_t(len(snapshot)), &a); code < 0 {
		return a.failure(code)
	}
	return nil
}
