package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	auditlog "motorpool/store/activity"
	"motorpool/telematics"
)

func TestActivityVerify_NamesTheChangedEntry(t *testing.T) {
	postgres, url := recorded(t)
	log := auditlog.New(postgres)
	for range 3 {
		if err := log.Add(t.Context(), telematics.Activity{At: time.Now(), Actor: telematics.Actor{Subject: "eva", Role: telematics.Admin}, Action: telematics.StatusRead}); err != nil {
			t.Fatal(err)
		}
	}
	tool := func(args ...string) (string, error) {
		t.Helper()
		return output(t, append([]string{"activity"}, append(args, "--database-url", url)...)...)
	}
	if _, err := tool("verify", "--head"); exitCode(err) != exitRefused || !strings.Contains(err.Error(), "nothing is sealed yet") {
		t.Errorf("--head before the first seal: exit code %d, %v", exitCode(err), err)
	}
	if _, err := auditlog.NewSealer(postgres, slog.New(slog.DiscardHandler)).Seal(t.Context()); err != nil {
		t.Fatal(err)
	}
	head, err := tool("verify", "--head")
	head = strings.TrimSpace(head)
	if err != nil || len(head) != 64 {
		t.Fatalf("--head: %q, %v", head, err)
	}
	if printed, err := tool("verify", "--expect-head", head); err != nil || !inOrder(printed, "compared 3 entries with 1 seals; 0 entries", "head: seal 1, up to entry 3, "+head) {
		t.Errorf("unchanged log: %q, %v", printed, err)
	}
	if _, err := tool("verify", "--expect-head", "abc"); exitCode(err) != exitUsage {
		t.Errorf("--expect-head abc: %v, want a usage error", err)
	}
	if printed, err := tool("verify", "--expect-head", strings.Repeat("0", 64)); exitCode(err) != exitFailed || !strings.Contains(printed, "no seal has the expected hash 000") {
		t.Errorf("with another head: %q, %v", printed, err)
	}
	exported, err := tool("export", "--from", "2020-01-01")
	if err != nil || strings.Count(exported, "\n") != 5 {
		t.Fatalf("export: %q, %v", exported, err)
	}
	if rows, err := tool("export", "--output", "csv", "--to", "2020-01-01T00:00:00Z"); err != nil || strings.Count(rows, "\n") != 1 {
		t.Errorf("export of a time without entries: %q, %v", rows, err)
	}
	if _, err := tool("export", "--from", "yesterday"); exitCode(err) != exitUsage {
		t.Errorf("--from yesterday: %v, want a usage error", err)
	}
	file := filepath.Join(t.TempDir(), "log.jsonl")
	for text, want := range map[string]int{exported: 0, strings.Replace(exported, "eva", "eve", 1): exitFailed} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if printed, err := output(t, "activity", "verify", "--file", file, "--expect-head", head); exitCode(err) != want {
			t.Errorf("--file: %q, %v; want exit code %d", printed, err, want)
		}
	}
	for _, statement := range []string{`alter table activity disable trigger user`, `update activity set actor_subject = 'eve' where id = 2`} {
		if _, err := postgres.Pool.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	printed, err := tool("verify")
	if exitCode(err) != exitFailed || !strings.Contains(printed, "entry 2 was changed after it was sealed (seal 1)") || !strings.Contains(err.Error(), "1 findings") {
		t.Errorf("changed log: %q, %v", printed, err)
	}
	if err := run(t.Context(), []string{"activity", "verify", "--database-url", "postgres://127.0.0.1:1/none"}); exitCode(err) != exitUnavailable {
		t.Errorf("without a database: %v, want unavailable", err)
	}
}
