package simulator

import (
	"maps"
	"slices"
	"sync"

	"motorpool/telematics"
)

// Memory is the part of a unit that survives a restart [CMD-5]. Save returns when the log is stored
// durably.
type Memory interface {
	Load() (Log, error) // the zero Log where nothing was saved
	Save(Log) error
}

// Log is the content of a unit's memory.
type Log struct {
	Commands []Remembered              // oldest first
	Seq      map[telematics.Lane]int64 // the last one accepted in each lane
	// The immobilizer waits for the ignition to be switched off [CMD-7]
	Armed bool
}

// Remembered is a command that the unit has seen.
type Remembered struct {
	Command telematics.CommandID
	Action  telematics.Action
	Lane    telematics.Lane
	Seq     int64
	Answer  *telematics.Answer // the final one, never changed; nil: still at work
}

const (
	remembered = 64 // finished commands [CMD-5]
	repeated   = 8  // answers in a report [TEL-3]
)

func (l *Log) find(id telematics.CommandID) *Remembered {
	i := slices.IndexFunc(l.Commands, func(r Remembered) bool { return r.Command == id })
	if i < 0 {
		return nil
	}
	return &l.Commands[i]
}

// add forgets the oldest finished command; one that is still at work is never forgotten.
func (l *Log) add(r Remembered) {
	l.Commands = append(l.Commands, r)
	if len(l.Commands) <= remembered {
		return
	}
	i := slices.IndexFunc(l.Commands, func(r Remembered) bool { return r.Answer != nil })
	if i >= 0 {
		l.Commands = slices.Delete(l.Commands, i, i+1)
	}
}

// answers returns the final answers of the latest commands, oldest first [TEL-3].
func (l *Log) answers() []telematics.Answer {
	var final []telematics.Answer
	for _, r := range slices.Backward(l.Commands) {
		if r.Answer != nil && len(final) < repeated {
			final = append(final, *r.Answer)
		}
	}
	slices.Reverse(final)
	return final
}

func (l Log) clone() Log {
	l.Commands = slices.Clone(l.Commands)
	l.Seq = maps.Clone(l.Seq)
	if l.Seq == nil {
		l.Seq = map[telematics.Lane]int64{}
	}
	return l
}

// RAM is a memory that survives the restart of a unit, but not of this process. The zero value is
// empty.
type RAM struct {
	mu  sync.Mutex
	log Log
}

// Load returns the log that was saved last.
func (m *RAM) Load() (Log, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log.clone(), nil
}

// Save keeps a copy.
func (m *RAM) Save(l Log) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = l.clone()
	return nil
}
