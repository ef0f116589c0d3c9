package simulator

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

func memories(t *testing.T) map[string]func() Memory {
	path := filepath.Join(t.TempDir(), "unit.json")
	ram := &RAM{}
	return map[string]func() Memory{
		"ram":  func() Memory { return ram },
		"file": func() Memory { return File{Path: path} }, // opened again each time
	}
}

func TestMemory_ReturnsWhatWasSavedLast(t *testing.T) {
	for name, open := range memories(t) {
		t.Run(name, func(t *testing.T) {
			if l, err := open().Load(); err != nil || len(l.Commands) != 0 || l.Seq == nil {
				t.Fatalf("new memory: %+v, %v; want it empty", l, err)
			}
			body := Hatchback(munich)
			report := body.Report(epoch)
			answer := telematics.Answer{Command: uuid.New(), State: telematics.Failed, At: epoch, Detail: "x", Report: &report}
			want := Log{
				Commands: []Remembered{
					{Command: answer.Command, Action: telematics.Lock, Lane: telematics.AccessLane, Seq: 4, Answer: &answer},
					{Command: uuid.New(), Action: telematics.OpenTopCase, Lane: telematics.TopCaseLane, Seq: 5},
				},
				Seq: map[telematics.Lane]int64{telematics.AccessLane: 4}, Armed: true,
			}
			require.NoError(t, open().Save(want.clone()))
			got, err := open().Load()
			require.NoError(t, err)
			again := got.Commands[0].Answer
			if string(v1.EncodeAnswer(*again)) != string(v1.EncodeAnswer(answer)) {
				t.Errorf("answer %+v, want %+v", again, answer)
			}
			got.Commands[0].Answer, want.Commands[0].Answer = nil, nil
			assert.DeepEqual(t, got, want, "loaded")
		})
	}
}

// What was not saved must be lost after a restart. Otherwise tests of restarts would be invalid.
func TestMemory_DoesNotShareWhatItWasGiven(t *testing.T) {
	for name, open := range memories(t) {
		l := Log{Commands: []Remembered{{Command: uuid.New()}}, Seq: map[telematics.Lane]int64{}}
		require.NoError(t, open().Save(l))
		l.Commands[0].Seq, l.Seq[telematics.AccessLane] = 9, 9
		if got, err := open().Load(); err != nil || got.Commands[0].Seq != 0 || len(got.Seq) != 0 {
			t.Errorf("%s: a change after Save was loaded: %+v, %v", name, got, err)
		}
	}
}

func TestMemory_InvalidFileIsAnErrorAndLeavesNoTemporaryFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "unit.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"commands":[{"answer":{"status":"odd"}}]}`), 0o600))
	if _, err := (File{Path: path}).Load(); err == nil {
		t.Error("an invalid file was loaded")
	}
	if err := (File{Path: filepath.Join(dir, "none", "unit.json")}).Save(Log{}); err == nil {
		t.Error("Save into a folder that does not exist returned no error")
	}
	require.NoError(t, (File{Path: path}).Save(Log{}))
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder has %v, %v; want one file", left, err)
	}
}

func TestMemory_ForgetsOnlyFinishedCommands(t *testing.T) {
	var l Log
	unfinished := uuid.New()
	l.add(Remembered{Command: unfinished})
	for range 3 * remembered {
		l.add(Remembered{Command: uuid.New(), Answer: &telematics.Answer{}})
	}
	if len(l.Commands) != remembered || l.find(unfinished) == nil {
		t.Errorf("%d commands are remembered, the unfinished one is %v", len(l.Commands), l.find(unfinished))
	}
}
