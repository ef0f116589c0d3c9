package keyfile

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"time"

	"motorpool/guard"
)

// Source polls keys that may change while they are used, from a file or a URL. Call Load once, then
// Watch. Not safe for concurrent use.
type Source[K any] struct {
	Name  string        // in logs
	Every time.Duration // between two reads
	Read  func(context.Context) ([]byte, error)
	Parse func([]byte) (K, error)
	Log   *slog.Logger
	// Report is called once with each new error, and with nil when reading succeeds again.
	// Defaults to a log message.
	Report func(error)

	inUse   [sha256.Size]byte // of the content that was read last
	problem string            // with the present content; empty: none
}

// Load reads the keys once. It fails where the source cannot be read, or has no valid keys.
func (s *Source[K]) Load(ctx context.Context) (K, error) {
	keys, _, err := s.poll(ctx)
	return keys, err
}

// Watch calls changed with the keys whenever they differ from those in use, until the context ends.
// While the source cannot be read, the keys in use stay. Each problem is logged once. It returns
// nil.
func (s *Source[K]) Watch(ctx context.Context, changed func(K)) error {
	for guard.Pause(ctx, s.Every) {
		keys, differ, err := s.poll(ctx)
		if ctx.Err() != nil {
			return nil
		}
		s.report(err)
		if differ {
			changed(keys)
		}
	}
	return nil
}

// poll reads the content every time: the date of a file has too coarse a resolution to show a
// change.
func (s *Source[K]) poll(ctx context.Context) (keys K, differ bool, err error) {
	text, err := s.Read(ctx)
	if err != nil {
		return keys, false, err
	}
	sum := sha256.Sum256(text)
	if sum == s.inUse {
		return keys, false, nil
	}
	if keys, err = s.Parse(text); err != nil {
		return keys, false, err
	}
	s.inUse = sum
	return keys, true, nil
}

func (s *Source[K]) report(err error) {
	switch {
	case err != nil && err.Error() != s.problem:
		s.problem = err.Error()
	case err == nil && s.problem != "":
		s.problem = ""
	default:
		return
	}
	switch {
	case s.Report != nil:
		s.Report(err)
	case err != nil:
		s.Log.Warn("keys not read; those that were read stay in force", "source", s.Name, "err", err)
	default:
		s.Log.Info("keys are readable again", "source", s.Name)
	}
}
