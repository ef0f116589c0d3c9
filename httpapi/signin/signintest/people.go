package signintest

import (
	"context"
	"sync"

	"motorpool/operators"
	"motorpool/telematics"
)

// People stores operators and their links. It is safe for concurrent use.
type People struct {
	mu    sync.Mutex
	all   map[string]operators.Operator // by name
	links map[string]string             // digest of a link's code: name
	reads int
	by    telematics.Author
}

// NewPeople returns a store of operators.
func NewPeople(all ...operators.Operator) *People {
	p := &People{all: map[string]operators.Operator{}, links: map[string]string{}}
	for _, o := range all {
		p.Set(o)
	}
	return p
}

// Set adds or replaces an operator.
func (p *People) Set(o operators.Operator) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[o.Name] = o
}

// Remove removes an operator.
func (p *People) Remove(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, name)
}

// NewLink returns the code of a new link of an operator.
func (p *People) NewLink(name string) string {
	code, digest := operators.NewCode()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links[string(digest)] = name
	return code
}

// Links returns how many links are unused.
func (p *People) Links() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Reads returns how often an operator's name was looked up since the last call, or whether there is
// any operator.
func (p *People) Reads() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	reads := p.reads
	p.reads = 0
	return reads
}

// By returns who set the last password.
func (p *People) By() telematics.Author {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.by
}

// ByName returns the operator of a name. Its error is nil.
func (p *People) ByName(_ context.Context, name string) (operators.Operator, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads++
	o, found := p.all[name]
	return o, found, nil
}

// OfSession returns the operator of a session. Its error is nil.
func (p *People) OfSession(_ context.Context, id, epoch int64) (operators.Operator, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.all {
		if o.ID == id && o.Epoch == epoch {
			return o, true, nil
		}
	}
	return operators.Operator{}, false, nil
}

// ByLink returns the operator of a link. Its error is nil.
func (p *People) ByLink(_ context.Context, digest []byte) (operators.Operator, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o, found := p.all[p.links[string(digest)]]
	return o, found, nil
}

// SetPassword sets the password of a link's operator, and uses the link up. Its error is nil.
func (p *People) SetPassword(
	_ context.Context, digest []byte, password string, by telematics.Author,
) (operators.Operator, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	o, found := p.all[p.links[string(digest)]]
	if !found {
		return operators.Operator{}, false, nil
	}
	delete(p.links, string(digest))
	o.Password, o.Epoch, p.by = password, o.Epoch+1, by
	p.all[o.Name] = o
	return o, true, nil
}

// Any reports whether there is an operator. Its error is nil.
func (p *People) Any(context.Context) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads++
	return len(p.all) > 0, nil
}
