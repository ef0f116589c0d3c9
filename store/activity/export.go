package activity

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"time"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

// Range is a range of time: from, inclusive, to, exclusive. A zero end is open.
type Range struct{ From, To time.Time }

// Export writes the entries of a range of time as lines of JSON, in the order of their ids. It
// streams, without holding the log in memory, and has no timeout but that of the context.
func (l *Log) Export(ctx context.Context, to io.Writer, r Range) error {
	db, err := l.db.WithoutTimeouts(ctx, 0)
	if err != nil {
		return err
	}
	defer db.Close()
	w := bufio.NewWriter(to)
	lines := json.NewEncoder(w)
	var entry readRow
	var failed error // to write
	err = pg.Each(ctx, db, entry.fields(), func() error {
		line := newRow(entry.Activity)
		if entry.parameters != nil {
			line.Parameters = json.RawMessage(*entry.parameters)
		}
		failed = lines.Encode(line)
		return failed
	}, `
		select `+columns+` from activity
		where ($1::timestamptz is null or at >= $1) and ($2::timestamptz is null or at < $2)
		order by id`, pg.Timestamp(r.From), pg.Timestamp(r.To))
	if failed != nil {
		return failed
	}
	if err != nil {
		return unavailable.Wrap("export the audit log", err)
	}
	return w.Flush()
}
