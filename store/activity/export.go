package activity

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Range is a range of time: from, inclusive, to, exclusive. A zero end is open.
type Range struct{ From, To time.Time }

// Export writes the entries of a range of time as lines of JSON, in the order of their ids. It
// streams, without holding the log in memory, and has no timeout but that of the context.
func (l *Log) Export(ctx context.Context, to io.Writer, r Range) error {
	w := bufio.NewWriter(to)
	lines := json.NewEncoder(w)
	err := l.each(ctx, r, func(entry row) error {
		if entry.Parameters != nil {
			entry.Written = json.RawMessage(*entry.Parameters)
		}
		return lines.Encode(struct {
			ID int64 `json:"id"`
			row
		}{entry.ID, entry})
	})
	if err != nil {
		return err
	}
	return w.Flush()
}

// ExportCSV writes the same entries, after a line with the names of the columns.
func (l *Log) ExportCSV(ctx context.Context, to io.Writer, r Range) error {
	w := csv.NewWriter(to)
	names := strings.FieldsFunc(columns, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	if err := w.Write(names); err != nil {
		return err
	}
	if err := l.each(ctx, r, func(entry row) error { return w.Write(entry.csv()) }); err != nil {
		return err
	}
	w.Flush()
	return w.Error()
}

// each calls write with each entry of a range, without holding all of them in memory.
func (l *Log) each(ctx context.Context, r Range, write func(row) error) error {
	db, err := l.db.WithoutTimeouts(ctx, 0)
	if err != nil {
		return err
	}
	defer db.Close()
	//nolint:sqlclosecheck // the linter does not see Close through sqlx.Rows
	rows, err := db.QueryxContext(ctx, `
		select `+columns+` from activity
		where ($1::timestamptz is null or at >= $1) and ($2::timestamptz is null or at < $2)
		order by id`, pg.Timestamp(r.From), pg.Timestamp(r.To))
	if err != nil {
		return unavailable.Wrap("export the audit log", err)
	}
	defer rows.Close()
	for rows.Next() {
		var entry row
		if err := rows.StructScan(&entry); err != nil {
			return unavailable.Wrap("export the audit log", err)
		}
		entry.At = pg.Timestamp(*entry.At)
		if err := write(entry); err != nil {
			return err
		}
	}
	return unavailable.Wrap("export the audit log", rows.Err())
}

// formula is what a spreadsheet would compute at the beginning of a cell. Many read a semicolon as
// the end of a cell, too, whatever is quoted.
var formula = regexp.MustCompile(`(^|;)([\s"']*[=+\-@＝＋－＠])`)

// cell returns a text that a spreadsheet shows as it is: an apostrophe marks it as a text.
func cell(text string) string { return formula.ReplaceAllString(telematics.Printable(text), "$1'$2") }

func (r row) csv() []string {
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
		strconv.FormatInt(r.ID, 10), r.At.Format(time.RFC3339Nano), cell(r.ActorSubject), r.ActorRole, number(r.ActorAgencyID),
		number(r.AgencyID), number(r.VehicleID), number(r.BookingID), r.Action, cell(pg.Deref(r.Parameters)), r.Outcome, r.Code,
		id(r.CommandID), id(r.RequestID), strconv.FormatInt(r.LatencyUS, 10), strconv.FormatBool(r.Late), cell(r.Note),
	}
}
