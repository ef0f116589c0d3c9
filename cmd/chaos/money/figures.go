package money

import (
	"maps"
	"sync"
)

// Groups of figures.
const (
	answers = "answer"  // of calls, by status and code
	strikes = "strike"  // what was done to processes
	notices = "notices" // what became of what the processor told
)

// figures count what happens in a round. They are safe for concurrent use.
type figures struct {
	mu     sync.Mutex // guards counts
	counts map[string]map[string]int
}

func newFigures() *figures {
	return &figures{counts: map[string]map[string]int{answers: {}, strikes: {}, notices: {}}}
}

func (f *figures) add(group, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[group][name]++
}

func (f *figures) all() map[string]map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]map[string]int{}
	for group, counts := range f.counts {
		all[group] = maps.Clone(counts)
	}
	return all
}
