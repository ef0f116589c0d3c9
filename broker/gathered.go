package broker

import "sync"

// gathered is a list that many add to, and that is taken whole. It is safe for concurrent use.
type gathered[T any] struct {
	most int

	mu   sync.Mutex
	list []T
}

// add returns how many there are now; zero: there is no room.
func (g *gathered[T]) add(v T) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.list) >= g.most {
		return 0
	}
	g.list = append(g.list, v)
	return len(g.list)
}

func (g *gathered[T]) take() []T {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := g.list
	g.list = nil
	return list
}
