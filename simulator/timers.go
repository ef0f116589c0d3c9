package simulator

import (
	"slices"
	"time"
)

// timers are the functions that a car has to call, and when. One goroutine owns them, and waits
// for C, which fires when something is due.
type timers struct {
	*time.Timer
	items []item // the earliest first; of the same instant, as they were added
}

type item struct {
	at time.Time
	do func()
}

func newTimers() *timers {
	a := &timers{Timer: time.NewTimer(0)}
	a.Stop()
	return a
}

func (a *timers) add(at time.Time, do func()) {
	i, _ := slices.BinarySearchFunc(a.items, at, func(other item, at time.Time) int {
		if other.at.After(at) {
			return 1
		}
		return -1
	})
	a.items = slices.Insert(a.items, i, item{at, do})
	a.wind()
}

// run calls the functions that are due.
func (a *timers) run() {
	for len(a.items) > 0 && !a.items[0].at.After(time.Now()) {
		do := a.items[0].do
		a.items = slices.Delete(a.items, 0, 1)
		do()
	}
	a.wind()
}

func (a *timers) clear() {
	a.items = nil
	a.Stop()
}

func (a *timers) wind() {
	if len(a.items) > 0 {
		a.Reset(time.Until(a.items[0].at))
	}
}
