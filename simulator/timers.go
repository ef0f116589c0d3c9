package simulator

import (
	"container/heap"
	"time"
)

// timers are the functions that a car has to call, and when. One goroutine owns them, and waits
// for C.
type timers struct {
	items items
	added int // orders items of the same instant
	timer *time.Timer
}

type item struct {
	at    time.Time
	order int
	do    func()
}

func newTimers() *timers {
	a := &timers{timer: time.NewTimer(0)}
	a.timer.Stop()
	return a
}

// C fires when something is due.
func (a *timers) C() <-chan time.Time { return a.timer.C }

func (a *timers) add(at time.Time, do func()) {
	a.added++
	heap.Push(&a.items, item{at: at, order: a.added, do: do})
	a.wind()
}

// run calls the functions that are due.
func (a *timers) run() {
	for len(a.items) > 0 && !a.items[0].at.After(time.Now()) {
		heap.Pop(&a.items).(item).do()
	}
	a.wind()
}

func (a *timers) clear() {
	a.items = nil
	a.timer.Stop()
}

func (a *timers) wind() {
	if len(a.items) > 0 {
		a.timer.Reset(time.Until(a.items[0].at))
	}
}

// items is a heap, the earliest on top.
type items []item

func (h items) Len() int      { return len(h) }
func (h items) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h items) Less(i, j int) bool {
	if h[i].at.Equal(h[j].at) {
		return h[i].order < h[j].order
	}
	return h[i].at.Before(h[j].at)
}
func (h *items) Push(x any) { *h = append(*h, x.(item)) }
func (h *items) Pop() any {
	last := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = item{} // so that its closure can be freed
	*h = (*h)[:len(*h)-1]
	return last
}
