package broker

import (
	"context"
	"sync"
	"time"
)

// later does together what is asked for within a short time, where nobody waits for its end.
type later[T any] struct {
	after      time.Duration
	do         func(context.Context, []T)
	background *sync.WaitGroup
	asked      gathered[T]
}

func (l *later[T]) add(ctx context.Context, v T) {
	if l.asked.add(v) > 1 {
		return // it goes with the first
	}
	l.background.Go(func() {
		time.Sleep(l.after)
		l.do(context.WithoutCancel(ctx), l.asked.take())
	})
}
