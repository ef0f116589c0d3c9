package activity

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"regexp"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Range is a range of time: from, inclusive, to, exclusive. A zero end is open.
type Range struct{ From, To time.Time }

func (r Range) args() []any { return []any{pg.Timestamp(r.From), pg.Timestamp(r.To)} }

// header is the first line of an export.
type header struct {
	From *time.Time `json:"from"` // null: from the beginning
	To   *time.Time `json:"to"`   // null: to the end
	// Entries of months before were removed; empty: none were.
	PrunedBefore string `json:"pruned_before"`
}

// Export writes the entries of a range of time as lines of JSON: a header, then each seal after its
// entries, as they were hashed, then the entries that are not sealed yet. Seals are exported as a
// whole, so the first and the last one may have entries outside of the range. It streams, without
// holding the log in memory, and has no timeout but that of the context.
func (l *Log) Export(ctx context.Context, to io.Writer, r Range) error {
	db, err := l.db.WithoutTimeouts(ctx, 0)
	if err != nil {
		return err
	}
	defer db.Close()
	w := bufio.NewWriter(to)
	if err := export(ctx, db, w, r); err != nil {
		return unavailable.Wrap("export the audit log", err)
	}
	return w.Flush()
}

func export(ctx context.Context, db *sqlx.DB, w *bufio.Writer, r Range) error {
	c, err := openChain(ctx, db)
	if err != nil {
		return err
	}
	first, err := json.Marshal(map[string]header{"export": {pg.Timestamp(r.From), pg.Timestamp(r.To), c.prunedBefore()}})
	if err != nil {
		return err
	}
	_, _ = w.Write(append(first, '\n')) // Flush returns the error
	var seals struct{ First, Last int64 }
	var last Seal // prune
	if n := len(c.prunes); n > 0 {
		last = c.prunes[n-1]
	}
	if err := db.GetContext(ctx, &seals, `
		select coalesce(min(number), 0) as first, coalesce(max(number), 0) as last from activity_seals
		where ($1::timestamptz is null or last_at >= $1) and ($2::timestamptz is null or first_at < $2)
			and number <= $3 and (number > $4 or month >= $5)`,
		append(r.args(), c.head.Number, last.Number, c.prunedBefore())...); err != nil {
		return err
	}
	if seals.Last > 0 {
		if err := c.walk(ctx, seals.First, seals.Last, func(previous Seal, s sealed) error { return writeSealed(w, previous, s) }); err != nil {
			return err
		}
	}
	return eachEntry(ctx, db, func(e sealedEntry, _ line) error {
		_, err := w.Write(e.text)
		return err
	}, `where ($1::timestamptz is null or at >= $1) and ($2::timestamptz is null or at < $2) and id > $3 order by id`, append(r.args(), c.head.LastID)...)
}

func writeSealed(w io.Writer, previous Seal, s sealed) error {
	if previous.Number != s.Number-1 {
		return fmt.Errorf("the seals before seal %d are missing: run motorpool activity verify", s.Number)
	}
	for _, e := range append(s.stray, s.entries...) {
		if _, err := w.Write(e.text); err != nil {
			return err
		}
	}
	text, err := s.line(previous.Hash)
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// ExportCSV writes the entries of a range of time, without their seals.
func (l *Log) ExportCSV(ctx context.Context, to io.Writer, r Range) error {
	db, err := l.db.WithoutTimeouts(ctx, 0)
	if err != nil {
		return err
	}
	defer db.Close()
	w := csv.NewWriter(to)
	_ = w.Write([]string{ // Flush reports the error
		"id", "at", "actor_subject", "actor_role", "actor_agency_id", "agency_id", "vehicle_id", "booking_id", "action",
		"parameters", "outcome", "code", "command_id", "request_id", "latency_us", "late", "note"})
	err = eachEntry(ctx, db, func(_ sealedEntry, l line) error { return w.Write(l.csv()) },
		`where ($1::timestamptz is null or at >= $1) and ($2::timestamptz is null or at < $2) order by id`, r.args()...)
	w.Flush()
	return unavailable.Wrap("export the audit log", errors.Join(err, w.Error()))
}

// formula is what a spreadsheet would compute at the beginning of a cell. Many read a semicolon as
// the end of a cell, too, whatever is quoted.
var formula = regexp.MustCompile(`(^|;)([\s"']*[=+\-@＝＋－＠])`)

// cell returns a text that a spreadsheet shows as it is: an apostrophe marks it as a text.
func cell(text string) string { return formula.ReplaceAllString(telematics.Printable(text), "$1'$2") }

func (l line) csv() []string {
	number := func(n *int64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatInt(*n, 10)
	}
	id := func(id *uuid.UUID) string {
		if id == nil {
			return ""
		}
		return id.String()
	}
	return []string{
		strconv.FormatInt(l.ID, 10), l.At.UTC().Format(time.RFC3339Nano), cell(l.ActorSubject), l.ActorRole, number(l.ActorAgencyID),
		number(l.AgencyID), number(l.VehicleID), number(l.BookingID), l.Action, cell(pg.Deref(l.Parameters)), l.Outcome, l.Code,
		id(l.CommandID), id(l.RequestID), strconv.FormatInt(l.LatencyUS, 10), strconv.FormatBool(l.Late), cell(l.Note),
	}
}

// VerifyExport compares the entries of an export with the seals in it, without a database. It
// cannot detect that the whole file was forged: compare the head, or pass hashes of seals that were
// noted elsewhere.
func VerifyExport(from io.Reader, expected ...Hash) (Report, error) {
	v := exportVerifier{sum: sha256.New(), expected: map[Hash]bool{}}
	for _, h := range expected {
		v.expected[h] = true
	}
	for lines := bufio.NewReader(from); ; {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(text) == 0 {
			break
		}
		if err != nil {
			return v.report, fmt.Errorf("line %d: %w", v.lines+1, err) // it has no end, either
		}
		v.lines++
		if err := v.line(text); err != nil {
			return v.report, fmt.Errorf("line %d: %w", v.lines, err)
		}
	}
	if v.lines == 0 {
		return v.report, errors.New("the file is empty")
	}
	v.report.Unsealed = v.pending
	for _, h := range expected {
		if v.expected[h] {
			v.report.Findings = append(v.report.Findings, Finding{Problem: HeadMissing, Head: h})
		}
	}
	return v.report, nil
}

type exportVerifier struct {
	report   Report
	lines    int
	pending  int64     // entries since the last seal
	sum      hash.Hash // of these
	expected map[Hash]bool
}

func (v *exportVerifier) line(text []byte) error {
	if v.lines == 1 {
		var first struct{ Export *header }
		if err := json.Unmarshal(text, &first); err != nil || first.Export == nil {
			return errors.New("the file does not begin as an export with --output json does")
		}
		v.report.PrunedBefore = first.Export.PrunedBefore
		return nil
	}
	if !bytes.HasPrefix(text, []byte(`{"seal":`)) {
		v.sum.Write(text)
		v.pending++
		return nil
	}
	var s Seal
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	v.seal(s, sha256.Sum256(text))
	return nil
}

func (v *exportVerifier) seal(s Seal, sum Hash) {
	add := func(p Problem) {
		v.report.Findings = append(v.report.Findings, Finding{Problem: p, Seal: s.Number, FirstID: s.FirstID, LastID: s.LastID})
	}
	before := v.report.Head
	if before.Number != 0 && (s.Number != before.Number+1 || s.Previous != before.Hash) || s.Number == 1 && s.Previous != (Hash{}) {
		add(SealChanged)
	}
	var digest Hash
	v.sum.Sum(digest[:0])
	pruned := v.pending == 0 && s.Month < v.report.PrunedBefore
	if digest != s.Digest && !pruned {
		add(EntriesDiffer)
	}
	s.Hash = sum
	v.report.Head = s
	v.report.Seals++
	v.report.Entries += v.pending
	v.pending = 0
	v.sum.Reset()
	if v.expected[sum] {
		v.expected[sum] = false
	}
}
