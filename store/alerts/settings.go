package alerts

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/alerts"
	"motorpool/store/activity"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// settingRow is the JSON of a setting in alert_rules.
type settingRow struct {
	Rule    alerts.Rule `json:"rule"`
	Off     bool        `json:"off,omitempty"`
	Seconds int64       `json:"for_s"`
	Levels  []levelRow  `json:"levels"`
}

type levelRow struct {
	Severity alerts.Severity `json:"severity"`
	Limit    *float64        `json:"limit,omitempty"`
}

func newSettingRow(s alerts.Setting) settingRow {
	row := settingRow{Rule: s.Rule, Off: s.Off, Seconds: int64(s.For / time.Second)}
	for _, l := range s.Levels {
		row.Levels = append(row.Levels, levelRow(l))
	}
	return row
}

func (r settingRow) setting() alerts.Setting {
	s := alerts.Setting{Rule: r.Rule, Off: r.Off, For: time.Duration(r.Seconds) * time.Second}
	for _, l := range r.Levels {
		s.Levels = append(s.Levels, alerts.Level(l))
	}
	return s
}

// Settings implements httpapi.Alerts.
func (s *Store) Settings(ctx context.Context, agency telematics.AgencyID) ([]alerts.Setting, error) {
	all, err := readSettings(ctx, s.DB.Pool, `where a.id = $1`, agency)
	if set, found := all[agency]; found || err != nil {
		return set, unavailable.Wrap("read the rules of alerts", err)
	}
	return nil, telematics.NoSuchAgency(agency)
}

// readSettings returns the settings of agencies a, for all rules.
func readSettings(
	ctx context.Context, db pg.Querier, which string, args ...any,
) (map[telematics.AgencyID][]alerts.Setting, error) {
	rows, err := pg.Pairs[telematics.AgencyID, []byte](ctx, db, `
		select a.id, coalesce(r.settings, '[]') as settings from agencies a left join alert_rules r on r.agency_id = a.id `+which, args...)
	all := make(map[telematics.AgencyID][]alerts.Setting, len(rows))
	for id, text := range rows {
		var stored []settingRow
		if err := json.Unmarshal(text, &stored); err != nil {
			return nil, fmt.Errorf("rules of alerts of agency %d: %w", id, err)
		}
		all[id] = alerts.Complete(pg.Map(stored, settingRow.setting))
	}
	return all, err
}

// SetSettings implements httpapi.Alerts.
func (s *Store) SetSettings(ctx context.Context, agency telematics.AgencyID, settings []alerts.Setting, by telematics.Author) error {
	text := pg.JSON(pg.Map(settings, newSettingRow))
	err := s.DB.Within(ctx, func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, `
			insert into alert_rules (agency_id, settings) values ($1, $2)
			on conflict (agency_id) do update set settings = excluded.settings`, agency, text)
		if refusal := pq.As(err); refusal != nil && refusal.Constraint == "alert_rules_agency_exists" {
			return telematics.NoSuchAgency(agency)
		}
		if err != nil {
			return err
		}
		return activity.Insert(ctx, tx, telematics.Activity{
			At: time.Now(), Actor: by.Actor, Agency: agency, Action: alerts.RulesChange, RequestID: by.RequestID,
			Outcome: telematics.Executed,
			Details: map[string]any{"rules": json.RawMessage(text)},
		})
	})
	return unavailable.Wrap("set the rules of alerts", err)
}
