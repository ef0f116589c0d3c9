package places

import "log/slog"

// condition is that of a source of addresses. It is logged when it changes, not each time
// that it is seen. One goroutine owns it.
type condition struct {
	log    *slog.Logger
	source string
	bad    bool
}

func (c *condition) is(err error) {
	switch {
	case err != nil && !c.bad:
		c.log.Warn("addresses are not kept up to date", "source", c.source, "err", err)
	case err == nil && c.bad:
		c.log.Info("addresses are kept up to date again", "source", c.source)
	}
	c.bad = err != nil
}
