// Package alerts stores alerts and their settings in Postgres, and decides in sweeps which alerts
// open and which are cleared.
//
// Where a comment names no error, the error is the database's; unavailable.Is reports whether
// Postgres could not be used.
package alerts

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"motorpool/store/pg"
	"motorpool/telematics"
)

// Config configures a Store.
type Config struct {
	DB *pg.DB
	// Publish publishes the events of alerts. It does not block. Defaults to nothing.
	Publish func(telematics.Event)
	Logger  *slog.Logger // Defaults to silence
}

// Store stores alerts. It is safe for concurrent use.
type Store struct {
	db      *pg.DB
	publish func(telematics.Event)
	log     *slog.Logger
	now     *time.Time // nil: the time of Postgres. Tests set it.
}

// New assembles a store. It does no I/O.
func New(c Config) *Store {
	s := &Store{db: c.DB, publish: c.Publish, log: cmp.Or(c.Logger, slog.New(slog.DiscardHandler))}
	if s.publish == nil {
		s.publish = func(telematics.Event) {}
	}
	return s
}

// at returns the SQL of the time, by the parameter that has Store.now.
func at(parameter int) string {
	return fmt.Sprintf(`coalesce($%d::timestamptz, clock_timestamp())`, parameter)
}
