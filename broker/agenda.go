package broker

import "time"

// agenda is what is to be done for a command under way, and when; zero: it is not to be done.
type agenda struct {
	end   time.Time // its deadline
	again time.Time // it is published
	note  time.Time // it is noted how far it has come
}

// rest returns how long there is nothing to do.
func (a *agenda) rest() time.Duration {
	first := a.end
	for _, at := range [...]time.Time{a.again, a.note} {
		if !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return time.Until(first)
}

// due reports whether the time has come for something that is to be done.
func due(at time.Time) bool { return !at.IsZero() && !time.Now().Before(at) }
