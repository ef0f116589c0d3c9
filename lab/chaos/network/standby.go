package network

import (
	"context"

	"motorpool/lab/world"
	"motorpool/simulator/devstack"
)

// Standby is a standby of a world's Postgres, and the lines around it: between the instances and
// the primary, and between primary and standby.
type Standby struct {
	*devstack.Postgres
	URL string // at which instances find the primary, whichever that is

	primary     *devstack.Postgres
	lines       Network
	database    *Line
	replication *Line
}

// StartStandby starts a standby, which ends with the world.
func StartStandby(ctx context.Context, w *world.World, synchronous bool) (*Standby, error) {
	s := &Standby{primary: w.Postgres, lines: Network{}}
	w.OnClose(s.lines.Close)
	var err error
	if s.URL, err = s.lines.Add("database", w.Postgres.URL()); err != nil {
		return nil, err
	}
	if _, err := s.lines.Add("replication", w.Postgres.URL()); err != nil {
		return nil, err
	}
	s.database, s.replication = s.lines["database"], s.lines["replication"]
	if s.Postgres, err = w.Postgres.StartStandby(ctx, devstack.StandbyConfig{
		Dir: w.Path("standby"), Primary: s.replication.address, Synchronous: synchronous, Logger: w.LogFile("standby"),
	}); err != nil {
		return nil, err
	}
	w.OnClose(s.Discard)
	return s, nil
}

// CutOff cuts the standby off: it gets no commits until Mend.
func (s *Standby) CutOff() { s.replication.Cut() }

// Mend ends CutOff.
func (s *Standby) Mend() error { return s.replication.Mend() }

// Replace kills the primary, and promotes the standby; URL then leads to it.
func (s *Standby) Replace(ctx context.Context) error {
	if err := s.primary.Kill(); err != nil {
		return err
	}
	s.database.Cut()
	if err := s.Promote(ctx); err != nil {
		return err
	}
	return s.database.MendTo(s.Postgres.URL())
}
