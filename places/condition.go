package places

import "log/slog"

// condition is logged when it changes, not each time that it is seen. One goroutine owns it.
type condition struct {
	log         *slog.Logger
	lost, found string
	bad         bool
}

func (c *condition) is(err error) {
	switch {
	case err != nil && !c.bad:
		c.log.Warn(c.lost, "err", err)
	case err == nil && c.bad:
		c.log.Info(c.found)
	}
	c.bad = err != nil
}
