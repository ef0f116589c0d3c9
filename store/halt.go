package store

import (
	"context"
	"time"

	"motorpool/telematics"
)

// Halts returns the halts in force, that of everybody first.
func (p *Postgres) Halts(ctx context.Context) (telematics.Halts, error) {
	var rows []struct {
		AgencyID int64     `db:"agency_id"`
		Why      string    `db:"why"`
		By       string    `db:"by"`
		Since    time.Time `db:"since"`
	}
	if err := p.db.SelectContext(ctx, &rows, `select agency_id, why, by, since from halts order by agency_id`); err != nil {
		return nil, wrap("read halts", err)
	}
	halts := make(telematics.Halts, len(rows))
	for i, row := range rows {
		halts[i] = telematics.Halt{Agency: telematics.AgencyID(row.AgencyID), Why: row.Why, By: row.By, Since: row.Since.UTC()}
	}
	return halts, nil
}

// Halt puts a halt in force, with its line of the history. A halt that is in force
// already gets the new reason. It reports false where there is no such agency.
func (p *Postgres) Halt(ctx context.Context, h telematics.Halt) (bool, error) {
	done, err := p.changeHalts(ctx, `
		with changed as (
			insert into halts (agency_id, why, by)
			select $1::bigint, $2::text, $3::text where $1::bigint = 0 or exists (select from agencies where id = $1::bigint)
			on conflict (agency_id) do update set why = excluded.why, by = excluded.by, since = excluded.since
			returning agency_id
		)`, telematics.CommandsHalt, h)
	return done, wrap("halt commands", err)
}

// Resume lifts a halt, with its line of the history. It reports false where there was none.
func (p *Postgres) Resume(ctx context.Context, h telematics.Halt) (bool, error) {
	done, err := p.changeHalts(ctx, `
		with changed as (delete from halts where agency_id = $1::bigint returning agency_id)`,
		telematics.CommandsResume, h)
	return done, wrap("resume commands", err)
}

// changeHalts runs a change of $1, the agency, and adds its line, in one step.
func (p *Postgres) changeHalts(ctx context.Context, change, activity string, h telematics.Halt) (bool, error) {
	result, err := p.db.ExecContext(ctx, change+`
		insert into activity (at, actor_subject, actor_role, agency_id, action, outcome, code, latency_us, late, note)
		select clock_timestamp(), $3::text, 'system', nullif(agency_id, 0), $4::text, '', '', 0, false, $2::text from changed`,
		h.Agency, h.Why, h.By, activity)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}
