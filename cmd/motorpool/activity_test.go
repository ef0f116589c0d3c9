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
	export := func(args ...string) ran {
		t.Helper()
		return tool(t, append([]string{"activity", "export", "--database-url", url}, args...)...)
	}
	all := export("--from", "2020-01-01").succeeds()
	all.must(len(strings.Split(all.printed, "\n")) == 3 && strings.Count(all.printed, `"actor_subject":"eva"`) == 3, "3 entries")
	export("--to", "2020-01-01T00:00:00Z").printsOnly("")
	export("--from", "yesterday").exits(exitUsage)
	export("--from", "2026-11-02", "--to", "2026-11-01").exits(exitUsage)
	tool(t, "activity", "export", "--database-url", "postgres://127.0.0.1:1/none").exits(exitUnavailable)
}
