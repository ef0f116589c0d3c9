package logger

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"motorpool/telematics"
	"motorpool/tracing"
)

func TestNew_TextHasTheTimeIfNotATerminal(t *testing.T) {
	var to bytes.Buffer
	log := New(&to, "warn", "text")
	log.Info("below the level")
	log.Warn("written", "vehicle", 7)
	if got := to.String(); !strings.HasPrefix(got, "time=") || !strings.HasSuffix(got, "level=WARN msg=written vehicle=7\n") ||
		strings.Count(got, "\n") != 1 {
		t.Errorf("the log has %q, want one warning with the time", got)
	}
}

func TestNew_WritesJSON(t *testing.T) {
	var to bytes.Buffer
	New(&to, "unknown level", "json").Info("written", "vehicle", 7)
	var line struct {
		Level, Msg string
		Vehicle    int
	}
	if err := json.Unmarshal(to.Bytes(), &line); err != nil || line.Level != "INFO" || line.Msg != "written" || line.Vehicle != 7 {
		t.Errorf("%q is decoded as %+v: %v", to.String(), line, err)
	}
}

func TestNew_JSONByDefaultIfNotATerminal(t *testing.T) {
	var to bytes.Buffer
	log := New(&to, "info", "auto")
	ctx := tracing.WithRequest(t.Context(), "r-1")
	log.InfoContext(ctx, "with the request of its context")
	log.With("vehicle", 7).InfoContext(ctx, "with another", tracing.RequestKey, "r-2")
	log.Info("without one")
	if got := to.String(); strings.Count(got, `"request_id":"r-1"`) != 1 || strings.Count(got, `"request_id":"r-2"`) != 1 ||
		strings.Count(got, "request_id") != 2 {
		t.Errorf("the log has %s", got)
	}
}

// Texts of units are logged: none may reach a terminal as a control sequence, not even one that is
// only spelled.
func TestNew_NothingControlsATerminal(t *testing.T) {
	const evil = "a\x1b]52;c;x\a\u009b2J\u202eb\x7f\n"
	for _, format := range []string{"text", "json"} {
		var to bytes.Buffer
		log := New(&to, "info", format)
		log.Warn("answer not readable", "detail", evil, "err", errors.New(evil), "spelled", `\x1b]52;c;x`, evil, 1)
		got := strings.TrimSuffix(to.String(), "\n")
		if telematics.Printable(got) != got {
			t.Errorf("%s: the log has %q", format, got)
		}
	}
}

func TestNew_DurationsAreInWords(t *testing.T) {
	for format, want := range map[string]string{"text": `retry_in="1 h 12 min"`, "json": `"retry_in":"1 h 12 min"`} {
		var to bytes.Buffer
		New(&to, "info", format).Info("retrying", "retry_in", 72*time.Minute)
		if !strings.Contains(to.String(), want) {
			t.Errorf("%s: the log has %s, want %s", format, to.String(), want)
		}
	}
}

func TestNew_LeavesOutWhatIsNotKnown(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var to bytes.Buffer
		New(&to, "info", format).Info("answer not stored", "request_id", nil, "unit", "u-1")
		if got := to.String(); strings.Contains(got, "request_id") || !strings.Contains(got, "u-1") {
			t.Errorf("%s: the log has %s", format, got)
		}
	}
}
