package keyfile

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"time"
)

// Source is keys that may change while they are used: a file, or what a URL answers. Load
// it once, then Watch it. Not safe for concurrent use.
type Source[K any] struct {
	Name  string        // in logs
	Every time.Duration // between two looks
	Read  func(context.Context) ([]byte, error)
	Parse func([]byte) (K, error)
	Log   *slog.Logger

	inForce [sha256.Size]byte // what was read last, and is in use
	problem string            // with what is there now; empty: none
}

// Load reads the keys.
func (s *Source[K]) Load(ctx context.Context) (K, error) {
	keys, _, err := s.look(ctx)
	return keys, err
}

// Watch calls changed with the keys whenever they are others than before, until the
// context ends. A source that cannot be read leaves those in force that are; each problem is
// logged once.
func (s *Source[K]) Watch(ctx context.Context, changed func(K)) error {
	tick := time.NewTicker(s.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		keys, news, err := s.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		s.report(err)
		if news {
			changed(keys)
		}
	}
}

// look reads the content itself, every time: a file that is replaced within the resolution
// of its date, by one of the same size, looks the same from outside.
func (s *Source[K]) look(ctx context.Context) (keys K, news bool, err error) {
	text, err := s.Read(ctx)
	if err != nil {
		return keys, false, err
	}
	sum := sha256.Sum256(text)
	if sum == s.inForce {
		return keys, false, nil
	}
	if keys, err = s.Parse(text); err != nil {
		return keys, false, err
	}
	s.inForce = sum
	return keys, true, nil
}

func (s *Source[K]) report(err error) {
	switch {
	case err != nil && err.Error() != s.problem:
		s.problem = err.Error()
		s.Log.Warn("keys not read; those that were read stay in force", "source", s.Name, "err", err)
	case err == nil && s.problem != "":
		s.problem = ""
		s.Log.Info("keys are readable again", "source", s.Name)
	}
}
