package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"motorpool/internal/atomicfile"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// File is a memory that survives the restart of this process too: a file of JSON, replaced whole.
// Its folder must exist.
type File struct{ Path string }

type fileLog struct {
	Commands []fileCommand             `json:"commands"`
	Seq      map[telematics.Lane]int64 `json:"seq"`
	Armed    bool                      `json:"armed"`
}

type fileCommand struct {
	Command telematics.CommandID `json:"command_id"`
	Action  telematics.Action    `json:"action"`
	Lane    telematics.Lane      `json:"lane"`
	Seq     int64                `json:"seq"`
	Answer  json.RawMessage      `json:"answer,omitempty"` // as on the wire
}

// Load reads the file. Without a file it returns an empty log.
func (f File) Load() (Log, error) {
	text, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return Log{}.clone(), nil
	}
	if err != nil {
		return Log{}, fmt.Errorf("read unit memory: %w", err)
	}
	var file fileLog
	if err := json.Unmarshal(text, &file); err != nil {
		return Log{}, fmt.Errorf("read unit memory %s: %w", f.Path, err)
	}
	l := Log{Seq: file.Seq, Armed: file.Armed}
	for _, c := range file.Commands {
		r := Remembered{Command: c.Command, Action: c.Action, Lane: c.Lane, Seq: c.Seq}
		if c.Answer != nil {
			answer, _, err := v1.DecodeAnswer(c.Answer, time.Now())
			if err != nil {
				return Log{}, fmt.Errorf("read unit memory %s: %w", f.Path, err)
			}
			r.Answer = &answer
		}
		l.Commands = append(l.Commands, r)
	}
	return l.clone(), nil
}

// Save replaces the file, and returns when it is on the disk.
func (f File) Save(l Log) error {
	file := fileLog{Commands: []fileCommand{}, Seq: l.Seq, Armed: l.Armed}
	for _, r := range l.Commands {
		c := fileCommand{Command: r.Command, Action: r.Action, Lane: r.Lane, Seq: r.Seq}
		if r.Answer != nil {
			c.Answer = v1.EncodeAnswer(*r.Answer)
		}
		file.Commands = append(file.Commands, c)
	}
	text, err := json.Marshal(file)
	if err != nil {
		return fmt.Errorf("encode unit memory: %w", err)
	}
	if err := atomicfile.Write(f.Path, text); err != nil {
		return fmt.Errorf("write unit memory: %w", err)
	}
	return nil
}
