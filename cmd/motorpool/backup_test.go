package main

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/simulator/devstack"
	auditlog "motorpool/store/activity"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// The test follows docs/backup.md: a base backup, archived WAL, the server is lost, and restored to
// a time before its end.
func TestBackup_RestoredToAMomentTheAuditLogIsWholeAndNumbersJump(t *testing.T) {
	devstack.NeedServer(t, devstack.PostgresServer)
	server := storetest.StartPostgres(t, false)
	must := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	must(server.Archive(t.Context()))
	open := func(address string) *pg.DB {
		t.Helper()
		db, err := pg.New(pg.Config{URL: address, Timeout: 20 * time.Second})
		must(err)
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	address := server.Database(storetest.Template)
	db := open(address)
	write := func(db *pg.DB, n int) {
		t.Helper()
		entries := make([]telematics.Activity, n)
		for i := range entries {
			entries[i] = telematics.Activity{
				At: time.Now(), Actor: telematics.Actor{Subject: "eva", Role: telematics.Admin},
				Action: telematics.StatusRead,
			}
		}
		must(auditlog.Insert(t.Context(), db.Pool, entries...))
	}
	number := func(db *pg.DB) (n int64) {
		t.Helper()
		must(db.Pool.Get(&n, `select next_command_seq()`))
		return n
	}
	tool := func(address string, args ...string) (string, error) {
		t.Helper()
		printed, err := output(t, append(args, "--database-url", address)...)
		return strings.TrimSpace(printed), err
	}
	export := func() string {
		t.Helper()
		entries, err := tool(address, "activity", "export")
		must(err)
		return entries
	}

	write(db, 400)
	number(db)
	backup, err := server.Backup(t.Context(), server.Dir+"/backup")
	must(err)
	write(db, 50)
	kept := export()
	moment, err := db.Time(t.Context())
	must(err)
	time.Sleep(20 * time.Millisecond) // so that the restored time is before the next entries
	write(db, 20)
	last := number(db)
	must(server.Archived(t.Context()))
	must(server.Kill())

	restored, err := backup.Restore(t.Context(), moment)
	must(err)
	t.Cleanup(func() { require.NoError(t, restored.Discard()) })
	to, err := url.Parse(restored.URL())
	must(err)
	to.Path = "/" + storetest.Template
	address = to.String()
	if restored := export(); restored != kept || strings.Count(kept, "\n") != 449 {
		t.Errorf("after the restore the audit log has %d lines, want the same 450 as at that moment", strings.Count(restored, "\n")+1)
	}
	if printed, err := tool(address, "seq", "advance", "--dry-run"); err != nil ||
		!strings.Contains(printed, "the next command makes it jump") {
		t.Errorf("seq advance after the restore: %q, %v", printed, err)
	}
	db = open(address)
	if next := number(db); next <= last {
		t.Errorf("the first number after the restore is %d, units have seen %d", next, last)
	}
	write(db, 5)
	if lines := export(); !strings.HasPrefix(lines, kept) || strings.Count(lines, "\n") != 454 {
		t.Errorf("after entries were added the audit log has %d lines, want 455", strings.Count(lines, "\n")+1)
	}
}
