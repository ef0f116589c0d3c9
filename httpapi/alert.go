package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"motorpool/alerts"
	"motorpool/httpapi/auth"
	"motorpool/httpapi/contract"
	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/telematics"
)

// alertHandlers answers with alerts and their rules, and changes them.
type alertHandlers struct{ *server }

func (a alertHandlers) list(c *request.Call) error {
	p := c.Page("alerts")
	query := alertQuery(c)
	query.Page = p.Query()
	query.State, query.Severity = alerts.State(c.QueryParam("state")), alerts.Severity(c.QueryParam("severity"))
	query.Rule, query.Vehicle = alerts.Rule(c.QueryParam("rule")), telematics.VehicleID(c.QueryInteger("vehicle_id"))
	query.Agency = c.QueryAgency()
	found, err := a.Alerts.Find(c.Ctx(), query)
	if err != nil {
		return err
	}
	listed, meta := request.Cut(p, found, func(a alerts.Alert) int64 { return a.No })
	if err := a.audit.recordList(c, "alerts", len(listed), "state", "severity", "rule", "vehicle_id"); err != nil {
		return err
	}
	return c.AnswerWith(http.StatusOK, request.Plural(len(listed), "alert"), resource.List(listed, resource.NewAlert), meta)
}

func (a alertHandlers) get(c *request.Call) error {
	found, err := a.visible(c)
	if err != nil {
		return err
	}
	entry := c.Entry(telematics.VehiclesRead, found.Vehicle)
	entry.Agency, entry.Outcome, entry.Details = found.Agency, telematics.Executed, map[string]any{"alert": found.ID.String()}
	if err := a.audit.recordDurably(c, entry); err != nil {
		return err
	}
	return c.Answer(alerts.Words(found)+".", resource.NewAlert(found))
}

// visible returns the alert that the path names. One that the caller may not see is reported as
// missing.
func (a alertHandlers) visible(c *request.Call) (alerts.Alert, error) {
	query := alertQuery(c)
	query.ID, _ = contract.ParseUUID(c.Param("id"))
	query.Limit = 1
	found, err := a.Alerts.Find(c.Ctx(), query)
	switch {
	case err != nil:
		return alerts.Alert{}, err
	case len(found) == 0:
		return alerts.Alert{}, alerts.NoSuchAlert(query.ID)
	}
	return found[0], nil
}

// alertQuery selects what the caller may see.
func alertQuery(c *request.Call) alerts.Query {
	return alerts.Query{Agency: c.Actor.Agency, Persons: c.Level >= auth.Administrator}
}

// acknowledge answers POST /admin/alerts/{id}/acknowledge. A repetition is answered with the first
// acknowledgement.
func (a alertHandlers) acknowledge(c *request.Call) error {
	ctx, cancel := c.Detached(a.Budget)
	defer cancel()
	now, err := a.visible(c)
	if err == nil && now.Person != "" && now.Person == c.Actor.Subject {
		err = request.Forbidden("The alert is about you: another administrator has to acknowledge it.")
	}
	if err == nil {
		now, err = a.Alerts.Acknowledge(ctx, now.ID, c.Actor.Agency, c.Text("note"), c.Author())
	}
	if err != nil {
		return a.audit.refused(ctx, c.Entry(alerts.Acknowledge, now.Vehicle), err)
	}
	return c.Answer(fmt.Sprintf("The alert is acknowledged by %s.", now.Seen.By), resource.NewAlert(now))
}

// checkAcknowledgement checks what the contract cannot express.
func checkAcknowledgement(c *request.Call, wrong *contract.FieldErrors) error {
	if _, sent := c.Values["note"]; sent {
		checkText(c, "note", wrong)
	}
	return nil
}

func (a alertHandlers) rules(c *request.Call) error {
	agency, err := pathAgency(c)
	if err != nil {
		return err
	}
	settings, err := a.Alerts.Settings(c.Ctx(), agency)
	if err != nil {
		return err
	}
	return answerRules(c, "The alert rules were read.", settings)
}

// setRules answers PUT /admin/agencies/{agency}/alert-rules. A rule that the body does not name has
// its default.
func (a alertHandlers) setRules(c *request.Call) error {
	ctx, cancel := c.Detached(a.Budget)
	defer cancel()
	now, err := a.replaceRules(ctx, c)
	if err != nil {
		entry := c.Entry(alerts.RulesChange, 0)
		entry.Agency = telematics.AgencyID(c.PathInteger("agency"))
		return a.audit.refused(ctx, entry, err)
	}
	return answerRules(c, "The alert rules were set.", now)
}

func answerRules(c *request.Call, message string, settings []alerts.Setting) error {
	meta := resource.AlertRulesMeta{Defaults: resource.NewAlertRules(alerts.Defaults()).Rules}
	return c.AnswerWith(http.StatusOK, message, resource.NewAlertRules(settings), meta)
}

func (a alertHandlers) replaceRules(ctx context.Context, c *request.Call) ([]alerts.Setting, error) {
	agency, err := pathAgency(c)
	if err != nil {
		return nil, err
	}
	var body resource.AlertRules
	if err := json.Unmarshal(c.Body, &body); err != nil {
		return nil, contract.Invalid("rules", "must be as the contract has them")
	}
	settings := body.Settings()
	if err := asFields(alerts.Check(settings)); err != nil {
		return nil, err
	}
	if c.Actor.Agency != 0 {
		if settings, err = a.keepMassAccess(ctx, agency, settings); err != nil {
			return nil, err
		}
	}
	if err := a.Alerts.SetSettings(ctx, agency, settings, c.Author()); err != nil {
		return nil, err
	}
	return a.Alerts.Settings(ctx, agency)
}

// keepMassAccess returns settings with mass_access as it is. The rule watches administrators of the
// agency, too, so that only those of all agencies may change it.
func (a alertHandlers) keepMassAccess(
	ctx context.Context, agency telematics.AgencyID, settings []alerts.Setting,
) ([]alerts.Setting, error) {
	watches := func(s alerts.Setting) bool { return s.Rule == alerts.MassAccess }
	now, err := a.Alerts.Settings(ctx, agency)
	if err != nil {
		return nil, err
	}
	is := now[slices.IndexFunc(now, watches)]
	switch i := slices.IndexFunc(settings, watches); {
	case i < 0:
		return append(settings, is), nil
	case !reflect.DeepEqual(settings[i], is):
		return nil, contract.Invalid(fmt.Sprintf("rules[%d]", i), "must be left out: administrators of all agencies change mass_access")
	}
	return settings, nil
}
