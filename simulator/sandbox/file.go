package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"motorpool/internal/atomicfile"
)

// saveEvery is how old the file may be: a crash loses changes of that time.
const saveEvery = 200 * time.Millisecond

// load reads the file, if there is one.
func (l *ledger) load(path string) error {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, l)
	}
	if err != nil {
		return fmt.Errorf("read the sandbox's ledger %s: %w", path, err)
	}
	return nil
}

// saveOften keeps the file up to date until the sandbox ends.
func (s *Server) saveOften() {
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-tick.C:
			if err := s.save(); err != nil {
				s.cfg.Logger.Error("the sandbox's ledger is not in its file", "err", err)
			}
		}
	}
}

// save replaces the file, if the ledger has changed.
func (s *Server) save() error {
	if s.cfg.File == "" {
		return nil
	}
	s.mu.Lock()
	if !s.dirty {
		s.mu.Unlock()
		return nil
	}
	text, err := json.Marshal(s.ledger)
	s.dirty = false
	s.mu.Unlock()
	if err == nil {
		err = atomicfile.Write(s.cfg.File, text)
	}
	if err != nil {
		s.mu.Lock()
		s.dirty = true
		s.mu.Unlock()
		return fmt.Errorf("write the sandbox's ledger: %w", err)
	}
	return nil
}
