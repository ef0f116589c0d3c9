package main

import (
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	auditlog "motorpool/store/activity"
	"motorpool/telematics"
)

func TestActivityExport_PrintsEntriesOfARange(t *testing.T) {
	postgres, url := recorded(t)
	log := auditlog.New(postgres)
	for range 3 {
		require.NoError(t, log.Add(t.Context(), telematics.Activity{
			At: time.Now(), Actor: telematics.Actor{Subject: "eva", Role: telematics.Admin}, Action: telematics.StatusRead,
		}))
	}
	export := func(args ...string) (string, error) {
		t.Helper()
		return output(t, append([]string{"activity", "export", "--database-url", url}, args...)...)
	}
	if printed, err := export("--from", "2020-01-01"); err != nil || strings.Count(printed, "\n") != 3 ||
		strings.Count(printed, `"actor_subject":"eva"`) != 3 {
		t.Errorf("export: %q, %v; want 3 entries", printed, err)
	}
	if printed, err := export("--to", "2020-01-01T00:00:00Z"); err != nil || printed != "" {
		t.Errorf("export of a time without entries: %q, %v", printed, err)
	}
	if _, err := export("--from", "yesterday"); exitCode(err) != exitUsage {
		t.Errorf("--from yesterday: %v, want a usage error", err)
	}
	if _, err := export("--from", "2026-11-02", "--to", "2026-11-01"); exitCode(err) != exitUsage {
		t.Errorf("--from after --to: %v, want a usage error", err)
	}
	if err := run(t.Context(),
		[]string{"activity", "export", "--database-url", "postgres://127.0.0.1:1/none"}); exitCode(err) != exitUnavailable {
		t.Errorf("without a database: %v, want unavailable", err)
	}
}
