package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/rental"
	"motorpool/telematics"
)

func (f fleetEdits) tariff(c *request.Call) error {
	found, err := f.findTariff(c.Ctx(), c)
	if err != nil {
		return err
	}
	return c.Answer("The tariff was read.", found)
}

// findTariff returns the tariff that the path names.
func (f fleetEdits) findTariff(ctx context.Context, c *request.Call) (resource.Tariff, error) {
	plans, terms, err := f.terms(ctx, c)
	for _, p := range plans {
		if body := resource.NewTariff(p, terms.Currency); body.Category == category(c) {
			return body, nil
		}
	}
	return resource.Tariff{}, cmp.Or(err, noSuchTariff(c))
}

func (f fleetEdits) tariffList(c *request.Call) error {
	plans, terms, err := f.terms(c.Ctx(), c)
	if err != nil {
		return err
	}
	return c.Answer(request.Plural(len(plans), "tariff"), resource.List(plans, func(p rental.Plan) resource.Tariff {
		return resource.NewTariff(p, terms.Currency)
	}))
}

func (f fleetEdits) setTariff(c *request.Call) error {
	return f.editTariff(c, object(c.Body), func(ctx context.Context, done telematics.FleetEdited) error {
		now, err := f.findTariff(ctx, c) // another request may have removed it meanwhile
		if err != nil {
			return err
		}
		return answerEdit(c, false, "", done, now)
	})
}

func (f fleetEdits) removeTariff(c *request.Call) error {
	return f.editTariff(c, json.RawMessage("null"), func(ctx context.Context, done telematics.FleetEdited) error {
		if len(done.Changes) == 0 {
			entry := c.Entry(rental.TariffChange, 0)
			entry.Agency = telematics.AgencyID(c.PathInteger("agency"))
			return f.audit.refused(ctx, entry, noSuchTariff(c))
		}
		return answerEdit(c, false, "", done, nil)
	})
}

func (f fleetEdits) editTariff(c *request.Call, tariff json.RawMessage, answer func(context.Context, telematics.FleetEdited) error) error {
	return f.editAgency(c, rental.TariffChange, map[string]any{
		"tariffs": map[string]json.RawMessage{category(c): tariff},
	}, answer)
}

func (f fleetEdits) rentalRules(c *request.Call) error {
	_, terms, err := f.terms(c.Ctx(), c)
	if err != nil {
		return err
	}
	return c.Answer("The rental rules were read.", resource.NewRentalRules(terms.Rules))
}

func (f fleetEdits) setRentalRules(c *request.Call) error {
	return f.editAgency(c, rental.RulesChange, map[string]any{"rental_rules": object(c.Body)},
		func(ctx context.Context, done telematics.FleetEdited) error {
			_, terms, err := f.terms(ctx, c)
			if err != nil {
				return err
			}
			return answerEdit(c, false, "", done, resource.NewRentalRules(terms.Rules))
		})
}

// editAgency sets fields of the agency that the path names.
func (f fleetEdits) editAgency(
	c *request.Call, action string, fields map[string]any, answer func(context.Context, telematics.FleetEdited) error,
) error {
	agency, err := pathAgency(c)
	if err != nil {
		return f.audit.refused(c.Ctx(), c.Entry(action, 0), err)
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	e := telematics.FleetEdit{Agency: agency, Fields: text, Entry: c.Entry(action, 0)}
	e.Entry.Agency = agency
	return f.edit(c, e, answer)
}

// terms returns the tariffs of the agency that the path names, and its terms.
func (f fleetEdits) terms(ctx context.Context, c *request.Call) ([]rental.Plan, rental.Terms, error) {
	agency, err := pathAgency(c)
	if err != nil {
		return nil, rental.Terms{}, err
	}
	return f.Editor.RentalTerms(ctx, agency)
}

// category returns the category that the path names, as it is stored.
func category(c *request.Call) string {
	return telematics.Clean(c.Param("category"))
}

func noSuchTariff(c *request.Call) error {
	return &telematics.Error{
		Code:    rental.TariffNotFound,
		Message: fmt.Sprintf("There is no tariff %.100s of agency %s.", category(c), c.Param("agency")),
	}
}
