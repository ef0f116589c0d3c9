package broker

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// crew runs functions in goroutines that stay for a moment. Their stacks have grown to what a claim, a signature and a publication take. That of a caller,
// who waits for a vehicle afterwards, need not: a large one would be copied to grow, kept while it waits, and copied to
// shrink in the middle of a collection.
type crew struct {
	mu   sync.Mutex
	idle []chan func() // of each that rests; the last that began to is the next to work
	over bool          // none rests any more
}

// restFor is how long a goroutine waits for the next function.
const restFor = 5 * time.Second

// do returns when the function has. It panics where that does.
func (c *crew) do(f func()) {
	done := make(chan error, 1)
	c.begin(func() {
		returned := false
		defer func() {
			if v := recover(); v != nil || !returned { // or it has left its goroutine
				done <- fmt.Errorf("%v\n%s", v, debug.Stack())
			}
			close(done)
		}()
		f()
		returned = true
	})
	if err := <-done; err != nil {
		panic(err)
	}
}

// begin gives a function, which must not panic, to one that rests, or to another.
func (c *crew) begin(f func()) {
	c.mu.Lock()
	last := len(c.idle) - 1
	if last < 0 {
		c.mu.Unlock()
		go c.work(f)
		return
	}
	next := c.idle[last]
	c.idle = c.idle[:last]
	c.mu.Unlock()
	next <- f // it holds one
}

// work does the function, and those that follow, until none comes for long.
func (c *crew) work(f func()) {
	tasks := make(chan func(), 1)
	rest := time.NewTimer(restFor)
	defer rest.Stop()
	for {
		f()
		f = nil // what it refers to is no more needed
		if !c.rest(tasks) {
			return
		}
		rest.Reset(restFor)
		select {
		case f = <-tasks:
		case <-rest.C:
			if c.leave(tasks) {
				return
			}
			f = <-tasks
		}
		if f == nil { // dismissed
			return
		}
	}
}

// rest reports false where none may.
func (c *crew) rest(tasks chan func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.idle = append(c.idle, tasks)
	}
	return !c.over
}

// dismiss ends those that rest, and lets the others end when they have done their functions.
func (c *crew) dismiss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, tasks := range c.idle {
		close(tasks)
	}
	c.idle, c.over = nil, true
}

// leave reports false where a function has been given, or is about to be.
func (c *crew) leave(tasks chan func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.idle, tasks)
	if i >= 0 {
		c.idle = slices.Delete(c.idle, i, i+1)
	}
	return i >= 0
}
