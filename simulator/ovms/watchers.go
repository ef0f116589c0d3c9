package ovms

import "context"

// Watchers returns how many clients watch the module.
func (m *Module) Watchers(ctx context.Context) (n int) {
	m.Ask(ctx, func() {
		m.countClients()
		n = len(m.clients)
	})
	return n
}
