package resource

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"motorpool/alerts"
)

// Alert is an alert, and who has its vehicle now.
type Alert struct {
	AlertState
	Holder *AlertHolder `json:"holder"`
}

// AlertState is an alert, open or cleared.
type AlertState struct {
	ID             string          `json:"id"`
	Rule           alerts.Rule     `json:"rule"`
	Severity       alerts.Severity `json:"severity"`
	State          alerts.State    `json:"state"`
	Summary        string          `json:"summary"`
	AgencyID       *int64          `json:"agency_id"`
	VehicleID      *int64          `json:"vehicle_id"` // null: it is about a person
	PlateNumber    *string         `json:"plate_number"`
	Person         *string         `json:"person"`
	BookingID      *int64          `json:"booking_id"`
	CommandID      *string         `json:"command_id"`
	Facts          map[string]any  `json:"facts"`
	Since          string          `json:"since"`
	OpenedAt       string          `json:"opened_at"`
	ClearedAt      *string         `json:"cleared_at"`
	AcknowledgedAt *string         `json:"acknowledged_at"`
	AcknowledgedBy *string         `json:"acknowledged_by"`
	Note           *string         `json:"note"`
}

// AlertHolder is who has the vehicle of an alert now.
type AlertHolder struct {
	BookingID int64  `json:"booking_id"`
	Reference string `json:"reference"`
	Client    string `json:"client"`
}

// NewAlert returns an alert.
func NewAlert(a alerts.Alert) Alert {
	body := Alert{AlertState: newAlertState(a)}
	if a.Holder != nil {
		body.Holder = &AlertHolder{BookingID: a.Holder.Booking, Reference: a.Holder.Reference, Client: a.Holder.Client}
	}
	return body
}

func newAlertState(a alerts.Alert) AlertState {
	body := AlertState{
		ID: a.ID.String(), Rule: a.Rule, Severity: a.Severity, State: alerts.Open, Summary: alerts.Words(a),
		AgencyID: OrNull(int64(a.Agency)), VehicleID: OrNull(int64(a.Vehicle)), PlateNumber: OrNull(a.Plate), Person: OrNull(a.Person),
		BookingID: OrNull(a.Booking), Facts: a.Facts, Since: Timestamp(a.Since), OpenedAt: Timestamp(a.Opened),
		ClearedAt: TimestampOrNull(a.Cleared),
	}
	if a.Command != uuid.Nil {
		body.CommandID = OrNull(a.Command.String())
	}
	if body.Facts == nil {
		body.Facts = map[string]any{}
	}
	if !a.Cleared.IsZero() {
		body.State = alerts.Cleared
	}
	if a.Seen != nil {
		body.AcknowledgedAt, body.AcknowledgedBy, body.Note = TimestampOrNull(a.Seen.At), OrNull(a.Seen.By), OrNull(a.Seen.Note)
	}
	return body
}

// AlertRules is how an agency wants the rules of alerts.
type AlertRules struct {
	Rules []AlertRule `json:"rules"`
}

// AlertRulesMeta has what rules are where an agency sets nothing.
type AlertRulesMeta struct {
	Defaults []AlertRule `json:"defaults"`
}

// AlertRule is how an agency wants one rule.
type AlertRule struct {
	Rule    alerts.Rule  `json:"rule"`
	Enabled *bool        `json:"enabled"` // null: it is enabled
	ForS    *int64       `json:"for_s"`   // null: the default
	Levels  []AlertLevel `json:"levels"`  // null: the default
}

// AlertLevel is a severity, and the limit from which on a rule has it.
type AlertLevel struct {
	Severity alerts.Severity `json:"severity"`
	Limit    *float64        `json:"limit"` // null: the rule has none
}

// NewAlertRules returns the settings of rules.
func NewAlertRules(settings []alerts.Setting) AlertRules {
	return AlertRules{List(settings, func(s alerts.Setting) AlertRule {
		enabled, seconds := !s.Off, int64(s.For/time.Second)
		return AlertRule{Rule: s.Rule, Enabled: &enabled, ForS: &seconds, Levels: List(s.Levels, func(l alerts.Level) AlertLevel {
			return AlertLevel(l)
		})}
	})}
}

// Settings returns the settings in a request. A member that is absent or null is the default's.
func (r AlertRules) Settings() []alerts.Setting {
	defaults := alerts.Defaults()
	return List(r.Rules, func(rule AlertRule) alerts.Setting {
		s := alerts.Setting{Rule: rule.Rule}
		if i := slices.IndexFunc(defaults, func(d alerts.Setting) bool { return d.Rule == rule.Rule }); i >= 0 {
			s = defaults[i]
		}
		if rule.Enabled != nil {
			s.Off = !*rule.Enabled
		}
		if rule.ForS != nil {
			s.For = time.Duration(*rule.ForS) * time.Second
		}
		if rule.Levels != nil {
			s.Levels = List(rule.Levels, func(l AlertLevel) alerts.Level { return alerts.Level(l) })
		}
		return s
	})
}
