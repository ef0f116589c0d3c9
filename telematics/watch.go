package telematics

import "time"

// Watchable is a Dialect whose units report more often while a client says that it watches
// them.
type Watchable interface {
	Dialect
	// Watch returns the message by which a watcher begins to watch a unit or continues to, or,
	// where on is false, ends. A unit keeps watchers apart by their names, so that none ends
	// another's watch. It changes nothing, and may be called for a message that is never sent.
	Watch(u Unit, watcher string, on bool) Transmission
	// WatchedFor is how long a unit is watched after the watcher's last message.
	WatchedFor() time.Duration
}

// Watchable returns the dialect that a record names, where its units can be watched.
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
