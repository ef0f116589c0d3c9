package broker

import (
	"context"
	"sync"
	"time"
)

// later does together what is asked for within a short time, where nobody waits for its end. What is asked for while it does waits
// until that is done: of what nobody waits for, there must not be much at a time.
type later[T any] struct {
	after      time.Duration
	do         func(context.Context, []T)
	background *sync.WaitGroup

	mu      sync.Mutex
	asked   []T
	running bool
}

func (l *later[T]) add(ctx context.Context, v T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.asked = append(l.asked, v); l.running {
		return // it goes with the others
	}
	l.running = true
	l.background.Go(func() { l.run(context.WithoutCancel(ctx)) })
}

func (l *later[T]) run(ctx context.Context) {
	for {
		time.Sleep(l.after)
		list := l.take()
		if len(list) == 0 {
			return
		}
		l.do(ctx, list)
	}
}

// take returns what is asked for, and notes that nobody sees to it any more where that is nothing.
func (l *later[T]) take() []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.asked
	l.asked, l.running = nil, len(list) > 0
	return list
}
