package main

import (
	"context"
	"errors"
	"testing"
)

func TestAFloorThatFailsIsMeasuredAgain(t *testing.T) {
	errBusy := errors.New("busy")
	for name, c := range map[string]struct {
		errs  []error
		rates []int // 0: not sound
		want  int   // attempts
		fails bool
	}{
		"sound":           {[]error{nil}, []int{5}, 1, false},
		"an error":        {[]error{errBusy, nil}, []int{0, 5}, 2, false},
		"refused":         {[]error{nil, nil, nil}, []int{0, 0, 5}, 3, false},
		"never sound":     {[]error{nil, nil, nil}, []int{0, 0, 0}, 3, false}, // the result says it
		"always an error": {[]error{errBusy, errBusy, errBusy}, []int{0, 0, 0}, 3, true},
	} {
		attempts := 0
		r, err := again(t.Context(), func() (int, error) {
			attempts++
			return c.rates[attempts-1], c.errs[attempts-1]
		}, func(r int) bool { return r > 0 })
		if attempts != c.want || (err != nil) != c.fails || r != c.rates[c.want-1] {
			t.Errorf("%s: %d attempts, %d, %v", name, attempts, r, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := again(ended, func() (int, error) { return 0, errBusy }, anything); !errors.Is(err, errBusy) {
		t.Errorf("after an interruption: %v", err)
	}
}
