package activity

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

var march = time.Date(2026, 3, 24, 10, 0, 0, 123456000, time.UTC)

// sealedLog is a log with a sealer.
type sealedLog struct {
	*testing.T
	*Log
	sealer *Sealer
}

func newSealedLog(t *testing.T) *sealedLog {
	t.Helper()
	db := storetest.Open(t, storetest.NewDatabase(t))
	return &sealedLog{T: t, Log: New(db), sealer: NewSealer(db, slog.New(slog.DiscardHandler))}
}

func entry(n int) telematics.Activity {
	return telematics.Activity{
		At: march.Add(time.Duration(n) * time.Second), Actor: telematics.Actor{Subject: fmt.Sprintf("admin-<%d>", n%7), Role: telematics.Admin, Agency: 2},
		Agency: 2, Vehicle: telematics.VehicleID(n), Action: telematics.StatusRead, Outcome: telematics.Executed, RequestID: uuid.New(),
		Details: map[string]any{"filter": map[string]any{"q": "ä & b"}, "vehicles": float64(n)}, Latency: 1500 * time.Microsecond,
	}
}

func (l *sealedLog) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// write adds entries in one statement.
func (l *sealedLog) write(entries ...telematics.Activity) {
	l.Helper()
	l.must(Insert(l.Context(), l.db.Pool, entries...))
}

func (l *sealedLog) writeNumbered(from, to int) {
	l.Helper()
	var entries []telematics.Activity
	for n := from; n <= to; n++ {
		entries = append(entries, entry(n))
	}
	l.write(entries...)
}

func (l *sealedLog) seal() {
	l.Helper()
	for more := true; more; {
		var err error
		more, err = l.sealer.Seal(l.Context())
		l.must(err)
	}
}

// exec runs statements as the owner of the database.
func (l *sealedLog) exec(statements ...string) {
	l.Helper()
	for _, statement := range statements {
		_, err := l.db.Pool.ExecContext(l.Context(), statement)
		l.must(err)
	}
}

func (l *sealedLog) tamper(statement string) {
	l.Helper()
	l.exec(`alter table activity disable trigger user`, `alter table activity_seals disable trigger user`, statement,
		`alter table activity enable trigger user`, `alter table activity_seals enable trigger user`)
}

func (l *sealedLog) verify(expected ...Hash) Report {
	l.Helper()
	report, err := l.Verify(l.Context(), expected...)
	l.must(err)
	return report
}

func (l *sealedLog) head() Hash {
	l.Helper()
	seal, err := l.Head(l.Context())
	l.must(err)
	return seal.Hash
}

// problems returns the findings without their seals.
func problems(r Report) []string {
	var list []string
	for _, f := range r.Findings {
		list = append(list, fmt.Sprintf("%s %d-%d", f.Problem, f.FirstID, f.LastID))
	}
	return list
}

func TestVerify_CleanLogHasNoFindings(t *testing.T) {
	t.Parallel()
	l := newSealedLog(t)
	if r := l.verify(); len(r.Findings) > 0 || r.Seals != 0 || r.Unsealed != 0 {
		t.Errorf("empty log: %+v", r)
	}
	l.writeNumbered(1, 2*sealEntries+50)
	if r := l.verify(); len(r.Findings) > 0 || r.Entries != 0 || r.Unsealed != 2*sealEntries+50 {
		t.Errorf("nothing sealed yet: %+v", r)
	}
	if age, err := l.UnsealedFor(t.Context()); err != nil || age == 0 {
		t.Errorf("UnsealedFor = %v, %v; want the age of the oldest entry", age, err)
	}
	l.seal()
	l.write(telematics.Activity{At: march.AddDate(0, 1, 0), Actor: telematics.Actor{Role: telematics.System}, Action: "x"}, entry(1))
	r := l.verify()
	if len(r.Findings) > 0 || r.Seals != 3 || r.Entries != 2*sealEntries+50 || r.Unsealed != 2 {
		t.Errorf("all but two entries sealed: %+v", r)
	}
	first := r.Head.Hash
	l.seal()
	if age, err := l.UnsealedFor(t.Context()); err != nil || age != 0 {
		t.Errorf("UnsealedFor = %v, %v; want 0", age, err)
	}
	r = l.verify(first, l.head())
	if len(r.Findings) > 0 || r.Seals != 5 || r.Entries != 2*sealEntries+52 || r.Unsealed != 0 || r.Head.LastID != 2*sealEntries+52 {
		t.Errorf("two months later: %+v", r)
	}
}

func TestSeal_ContinuesAfterMoreRolledBackIDsThanASealHolds(t *testing.T) {
	t.Parallel()
	l := newSealedLog(t)
	l.writeNumbered(1, 5)
	l.exec(fmt.Sprintf(`select nextval(pg_get_serial_sequence('activity', 'id')) from generate_series(1, %d)`, 3*sealEntries))
	l.writeNumbered(6, 10)
	l.seal()
	if r := l.verify(); len(r.Findings) > 0 || r.Entries != 10 || r.Unsealed != 0 || r.Head.LastID != 3*sealEntries+10 {
		t.Errorf("verified as %+v, want 10 sealed entries", r)
	}
}

func TestVerify_FindsWhatWasChanged(t *testing.T) {
	t.Parallel()
	l := newSealedLog(t)
	l.writeNumbered(1, sealEntries)
	// The ids 301 to 310 were rolled back.
	l.exec(`select nextval(pg_get_serial_sequence('activity', 'id')) from generate_series(1, 10)`)
	l.writeNumbered(sealEntries+1, sealEntries+100)
	l.seal()
	if r := l.verify(); len(r.Findings) > 0 || r.Seals != 2 {
		t.Fatalf("before the changes: %+v", r)
	}
	const insert = `insert into activity (id, at, actor_subject, actor_role, action, outcome, code, latency_us, late) overriding system value
		values (%d, '2026-03-24', 'eve', 'admin', 'status.read', 'executed', '', 1, false)`
	for _, c := range []struct {
		name, change string
		want         []string
	}{
		{"changed", `update activity set outcome = 'failed' where id = 5`, []string{"entry changed 5-5"}},
		{"parameters changed", `update activity set parameters = '{"vehicles": 7}' where id = 320`, []string{"entry changed 320-320"}},
		{"null instead of zero", `update activity set agency_id = null where id = 5`, []string{"entry changed 5-5"}},
		{"moved to another month", `update activity set at = at - interval '1 month' where id = 300`, []string{"entry changed 300-300"}},
		{"renumbered", `update activity set id = default where id = 300`, []string{"entry removed 300-300"}},
		{"two entries exchanged", `update activity set vehicle_id = 15 - vehicle_id where id in (7, 8)`, []string{"entry changed 7-7", "entry changed 8-8"}},
		{"removed", `delete from activity where id = 5`, []string{"entry removed 5-5"}},
		{"last entry removed", `delete from activity where id = 410`, []string{"entry removed 410-410"}},
		{"all of a seal removed", `delete from activity where id > 310`, []string{"entry removed 311-311", "entry removed 410-410"}},
		{"inserted", fmt.Sprintf(insert, 305), []string{"entry inserted 305-305"}},
		{"inserted before the first entry", fmt.Sprintf(insert, 0), []string{"entry inserted 0-0"}},
		{"digest of a seal changed", `update activity_seals set digest = sha256('') where number = 1`, []string{"seal changed 1-300", "entries changed 1-300"}},
		{"mark and its entry changed", `with m as (update activity_seals set marks = '' where number = 1) update activity set note = 'x' where id = 9`, nil},
		{"seal removed", `delete from activity_seals where number = 1`, []string{"seals removed 1-300"}},
		{"seal changed", `update activity_seals set sealed_at = sealed_at - interval '1 second' where number = 2`, []string{"seal changed 301-410"}},
		{"pruned by hand", `with s as (delete from activity_seals where number = 1) delete from activity where id <= 300`, []string{"seals removed 1-300"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := l.dump()
			l.tamper(c.change)
			r := l.verify()
			got := problems(r)
			if strings.HasPrefix(c.name, "all of a seal") && len(got) == 100 {
				got = []string{got[0], got[99]}
			}
			if c.want == nil && len(got) != sealEntries || c.want != nil && !slices.Equal(got, c.want) {
				t.Errorf("findings %q, want %q", got, c.want)
			}
			l.restore(before)
			if r := l.verify(); len(r.Findings) > 0 {
				t.Fatalf("after the log was restored: %v", r.Findings)
			}
		})
	}
}

func TestVerify_FindsThatAllSealsAreGone(t *testing.T) {
	t.Parallel()
	l := newSealedLog(t)
	l.write(entry(1), entry(2), entry(2*60*60))
	l.seal()
	l.tamper(`delete from activity_seals`)
	if got := problems(l.verify()); !slices.Equal(got, []string{"no seals 1-3"}) {
		t.Errorf("findings %q, want that there are no seals", got)
	}
}

// dump returns the log as JSON.
func (l *sealedLog) dump() (texts [2]string) {
	l.Helper()
	l.must(l.db.Pool.Get(&texts[0], `select json_agg(a) from activity a`))
	l.must(l.db.Pool.Get(&texts[1], `select json_agg(s) from activity_seals s`))
	return texts
}

func (l *sealedLog) restore(texts [2]string) {
	l.Helper()
	l.tamper(`delete from activity`)
	l.tamper(`delete from activity_seals`)
	_, err := l.db.Pool.Exec(`insert into activity overriding system value select * from json_populate_recordset(null::activity, $1)`, texts[0])
	l.must(err)
	_, err = l.db.Pool.Exec(`insert into activity_seals select * from json_populate_recordset(null::activity_seals, $1)`, texts[1])
	l.must(err)
}

// The owner of the database can rewrite the chain so that it is consistent. Only a head that was
// recorded elsewhere shows that the chain is another one.
func TestVerify_RewrittenChainLacksTheRecordedHead(t *testing.T) {
	t.Parallel()
	l := newSealedLog(t)
	l.writeNumbered(1, 20)
	l.seal()
	noted := l.head()
	l.writeNumbered(21, 30)
	l.seal()
	if r := l.verify(noted); len(r.Findings) > 0 {
		t.Errorf("before the change: %v", r.Findings)
	}
	l.tamper(`update activity set outcome = 'failed' where id = 5`)
	l.tamper(`delete from activity_seals`)
	l.seal()
	if r := l.verify(); len(r.Findings) > 0 {
		t.Errorf("the rewritten chain alone: %v", r.Findings)
	}
	if r := l.verify(noted); len(r.Findings) != 1 || r.Findings[0].Problem != HeadMissing || !strings.Contains(r.Findings[0].String(), noted.String()) {
		t.Errorf("with the recorded head: %v, want it missing", r.Findings)
	}
}

// A smaller id may be committed after a greater one.
func TestSeal_WaitsForTransactionsThatHaveDrawnSmallerIDs(t *testing.T) {
	t.Parallel()
	l := newSealedLog(t)
	early, err := l.db.Pool.BeginTxx(t.Context(), nil)
	l.must(err)
	defer early.Rollback() //nolint:errcheck // after the commit it has no effect
	l.must(Insert(t.Context(), early, entry(1)))
	l.writeNumbered(2, 3)
	sealed := make(chan error, 1)
	go func() {
		_, err := l.sealer.Seal(context.Background())
		sealed <- err
	}()
	select {
	case err := <-sealed:
		t.Fatalf("sealed before the open transaction ended: %v", err)
	case <-time.After(20 * sealRetry):
	}
	l.must(early.Commit())
	l.must(<-sealed)
	if r := l.verify(); len(r.Findings) > 0 || r.Entries != 3 {
		t.Errorf("verified as %+v, want 3 entries", r)
	}
}

func TestSeal_ManyWritersAndSealersMakeOneChain(t *testing.T) {
	t.Parallel()
	l := newSealedLog(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var working sync.WaitGroup
	for w := range 4 {
		working.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// Batches, single entries, and transactions that commit late or roll back.
				switch (n + w) % 4 {
				case 0:
					_ = l.Add(ctx, entry(n))
				case 1:
					l.late(ctx, time.Duration(n%30)*time.Millisecond, n%3 > 0)
				default:
					_ = Insert(ctx, l.db.Pool, entry(n), entry(n+1), entry(n+2))
				}
			}
		})
	}
	for range 3 {
		sealer := NewSealer(l.db, slog.New(slog.DiscardHandler))
		working.Go(func() {
			for ctx.Err() == nil {
				if _, err := sealer.Seal(ctx); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	working.Wait()
	var r Report
	// Postgres may still execute a statement that its caller abandoned.
	storetest.Eventually(t, "all entries are sealed", func() bool {
		l.seal()
		r = l.verify()
		return r.Unsealed == 0
	})
	var written int64
	l.must(l.db.Pool.Get(&written, `select count(*) from activity`))
	if len(r.Findings) > 0 || r.Entries != written || r.Seals < 3 {
		t.Errorf("%d entries were written: %+v", written, r)
	}
	t.Logf("%d entries have %d seals", r.Entries, r.Seals)
}

// late adds an entry in a transaction that lasts for a while.
func (l *sealedLog) late(ctx context.Context, d time.Duration, commit bool) {
	tx, err := l.db.Pool.BeginTxx(ctx, nil)
	if err != nil {
		return
	}
	defer tx.Rollback() //nolint:errcheck // after the commit it has no effect
	_ = Insert(ctx, tx, entry(1))
	time.Sleep(d)
	if commit {
		_ = tx.Commit()
	}
}

func TestExport_CanBeVerifiedWithoutADatabase(t *testing.T) {
	t.Parallel()
	l := newSealedLog(t)
	l.writeNumbered(1, 2*sealEntries)
	l.seal()
	noted := l.head()
	l.writeNumbered(2*sealEntries+1, 2*sealEntries+3)
	l.seal()
	l.writeNumbered(2*sealEntries+4, 2*sealEntries+5)
	export := func(r Range) string {
		t.Helper()
		var file bytes.Buffer
		l.must(l.Export(t.Context(), &file, r))
		return file.String()
	}
	whole := export(Range{})
	r, err := VerifyExport(strings.NewReader(whole), noted)
	if err != nil || len(r.Findings) > 0 || r.Seals != 3 || r.Entries != 2*sealEntries+3 || r.Unsealed != 2 || r.Head.Hash != l.head() {
		t.Errorf("the export is verified as %+v, %v", r, err)
	}
	// The range begins in the second seal and ends where that seal ends.
	part := export(Range{From: march.Add((sealEntries + 10) * time.Second), To: march.Add((sealEntries + 20) * time.Second)})
	r, err = VerifyExport(strings.NewReader(part), noted)
	if err != nil || len(r.Findings) > 0 || r.Seals != 1 || r.Entries != sealEntries || r.Unsealed != 0 {
		t.Errorf("a part of the log: %+v, %v", r, err)
	}
	if r, err = VerifyExport(strings.NewReader(part), l.head()); err != nil || len(r.Findings) != 1 || r.Findings[0].Problem != HeadMissing {
		t.Errorf("with a later head: %+v, %v; want it missing", r, err)
	}
	lines := strings.SplitAfter(whole, "\n")
	for name, tampered := range map[string][]string{
		"changed":        append(slices.Clone(lines[:9]), append([]string{strings.Replace(lines[9], "executed", "failed", 1)}, lines[10:]...)...),
		"removed":        append(slices.Clone(lines[:9]), lines[10:]...),
		"inserted":       append(slices.Clone(lines[:9]), lines[8:]...),
		"a seal removed": append(slices.Clone(lines[:sealEntries+1]), lines[sealEntries+2:]...),
	} {
		if strings.Join(tampered, "") == whole {
			t.Errorf("%s: the export is unchanged", name)
		}
		if r, err := VerifyExport(strings.NewReader(strings.Join(tampered, ""))); err != nil || len(r.Findings) == 0 {
			t.Errorf("%s: %+v, %v; want a finding", name, r, err)
		}
	}
	for name, bad := range map[string]string{"empty": "", "truncated": whole[:len(whole)-5], "another file": "id,at\n"} {
		if _, err := VerifyExport(strings.NewReader(bad)); err == nil {
			t.Errorf("%s: verified without an error", name)
		}
	}
	var table bytes.Buffer
	l.must(l.ExportCSV(t.Context(), &table, Range{From: march.Add(10 * time.Second), To: march.Add(12 * time.Second)}))
	if rows := strings.Split(table.String(), "\n"); len(rows) != 4 || !strings.HasPrefix(rows[1], "10,2026-03-24T10:00:10.123456Z,admin-<3>,admin,2,2,10,,status.read,") {
		t.Errorf("exported as %q", rows)
	}
}

// A role that may only insert can seal.
func TestSeal_RoleThatMayOnlyAddSuffices(t *testing.T) {
	t.Parallel()
	for _, r := range pg.Rights {
		if r.Table == "activity" || r.Table == "activity_seals" {
			if r.Privileges != "select insert" {
				t.Errorf("%s has the rights %s, want select and insert", r.Table, r.Privileges)
			}
		}
	}
	l := newSealedLog(t)
	l.writeNumbered(1, 3)
	l.exec(`create role activity_adder`, `grant select, insert on activity, activity_seals to activity_adder`)
	t.Cleanup(func() {
		if _, err := l.db.Pool.Exec(`drop owned by activity_adder; drop role activity_adder`); err != nil {
			t.Error(err)
		}
	})
	l.db.Pool.SetMaxOpenConns(1)
	l.exec(`set role activity_adder`)
	l.seal()
	for _, statement := range []string{`update activity set note = 'x'`, `delete from activity`, `truncate activity`, `update activity_seals set entries = 0`, `delete from activity_seals`} {
		if _, err := l.db.Pool.Exec(statement); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s by the role: %v, want permission denied", statement, err)
		}
	}
	l.exec(`reset role`)
	for _, statement := range []string{`update activity_seals set entries = 0`, `delete from activity_seals`, `truncate activity_seals`} {
		if _, err := l.db.Pool.Exec(statement); err == nil || !strings.Contains(err.Error(), "activity_seals is append-only") {
			t.Errorf("%s by the owner: %v, want it refused as append-only", statement, err)
		}
	}
	if r := l.verify(); len(r.Findings) > 0 || r.Entries != 3 {
		t.Errorf("verified as %+v, want 3 entries", r)
	}
}
