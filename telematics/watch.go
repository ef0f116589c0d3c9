package telematics

import "time"

// Watchable is a Dialect whose units report more often while a client watches them.
type Watchable interface {
	Dialect
	// Watch returns the message with which a watcher starts or renews its watch of a unit or, if
	// on is false, ends it. Units distinguish watchers by name, so that none ends another's
	// watch. It has no side effects: the message need not be sent.
	Watch(u Unit, watcher string, on bool) Transmission
	// WatchedFor returns how long a watch lasts after the watcher's last message.
	WatchedFor() time.Duration
}

// Watchable returns the dialect of a protocol, or false if its units cannot be watched.
func (ds Dialects) Watchable(p Protocol) (Watchable, bool) {
	d, _ := ds.Find(p)
	w, ok := d.(Watchable)
	return w, ok
}

// WatchableNames lists the protocols whose units can be watched.
func (ds Dialects) WatchableNames() (names []Protocol) {
	for _, d := range ds {
		if _, ok := d.(Watchable); ok {
			names = append(names, d.Protocol())
		}
	}
	return names
}
