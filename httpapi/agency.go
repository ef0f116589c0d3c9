package httpapi

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"motorpool/httpapi/contract"
	"motorpool/httpapi/resource"
	"motorpool/rental"
	"motorpool/telematics"
)

// agencies answers with agencies and their stations.
type agencies struct{ record Agencies }

// list answers GET /admin/agencies.
func (a agencies) list(c *call) error {
	return listOfAgency(
		c, "agencies", "agency", a.record.Agencies, func(a telematics.ListedAgency) int64 { return int64(a.ID) },
		resource.NewAgency,
	)
}

// stations answers GET /admin/stations.
func (a agencies) stations(c *call) error {
	return listOfAgency(
		c, "stations", "station", a.record.ListStations, func(s telematics.Station) int64 { return int64(s.ID) },
		resource.NewStation,
	)
}

// listOfAgency answers with a page of a list of the agency in the query, or of all agencies.
func listOfAgency[T, B any](
	c *call, list, thing string, read func(context.Context, telematics.AgencyQuery) ([]T, error), position func(T) int64, body func(T) B,
) error {
	p := c.page(list)
	var found []T
	if agency, visible := c.queryAgency(); visible {
		var err error
		if found, err = read(c.ctx(), telematics.AgencyQuery{Agency: agency, Page: p.query()}); err != nil {
			return err
		}
	}
	listed, meta := cut(p, found, position)
	return c.answerWith(plural(len(listed), thing), resource.List(listed, body), meta)
}

// agencyKeys answers with the keys of agencies, and changes them.
type agencyKeys struct {
	registry AgencyKeyRegistry
	agencies Agencies
}

// agency returns the agency that the path names. An agency that the caller may not see is reported
// as missing.
func (k agencyKeys) agency(c *call) (telematics.AgencyID, error) {
	if agency := telematics.AgencyID(c.pathInteger("agency")); agency > 0 && c.actor.Sees(agency) {
		return agency, nil
	}
	return 0, noSuchAgency(c)
}

func noSuchAgency(c *call) error {
	return &telematics.Error{Code: agencyNotFound, Message: fmt.Sprintf("There is no agency %s.", c.Param("agency"))}
}

func noSuchKey(c *call, more string) error {
	return &telematics.Error{
		Code:    agencyKeyNotFound,
		Message: fmt.Sprintf("There is no key %s of agency %s%s.", c.Param("key"), c.Param("agency"), more),
	}
}

// list answers GET /admin/agencies/{agency}/keys.
func (k agencyKeys) list(c *call) error {
	agency, err := k.agency(c)
	if err != nil {
		return err
	}
	all, err := k.registry.List(c.ctx())
	if err != nil {
		return err
	}
	keys := slices.DeleteFunc(slices.Clone(all), func(key rental.AgencyKey) bool { return key.Agency != agency })
	if len(keys) == 0 { // an agency without keys, or none
		found, err := k.agencies.Agencies(c.ctx(), telematics.AgencyQuery{Agency: agency, Page: telematics.Page{Limit: 1}})
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return noSuchAgency(c)
		}
	}
	return c.answer(plural(len(keys), "key"), resource.List(keys, resource.NewAgencyKey))
}

// add answers POST /admin/agencies/{agency}/keys. It refuses an agency that got rental.NewKeysADay
// keys within a day.
func (k agencyKeys) add(c *call) error {
	agency, err := k.agency(c)
	if err != nil {
		return err
	}
	key, exists, err := k.registry.Add(c.ctx(), agency, c.author())
	switch {
	case errors.Is(err, rental.ErrKeysUsedUp):
		c.quota = telematics.Quota{Limit: rental.NewKeysADay, Reset: time.Hour, Over: true}
		return overLimit(c.quota, "The limit of %d new keys a day for agency %d is used up.", agency)
	case err != nil:
		return err
	case !exists:
		return noSuchAgency(c)
	}
	return c.write(http.StatusCreated, envelope{
		Success: true, Message: fmt.Sprintf("The key %s was made. Its secret is shown only once.", key.ID),
		Data: resource.AgencyKeyWithSecret{AgencyKey: resource.NewAgencyKey(key), Secret: hex.EncodeToString(key.Secret)},
	})
}

// retire answers POST /admin/agencies/{agency}/keys/{key}/retire.
func (k agencyKeys) retire(c *call) error {
	agency, err := k.agency(c)
	if err != nil {
		return err
	}
	until := c.time("until")
	if !until.After(c.now()) {
		return contract.Invalid("until", "must be in the future; revoke ends a key now")
	}
	key, exists, err := k.registry.Retire(c.ctx(), agency, c.Param("key"), until, c.author())
	switch {
	case err != nil:
		return err
	case !exists:
		return noSuchKey(c, ", or it is revoked")
	}
	return c.answer(fmt.Sprintf("The key %s is valid until %s.", key.ID, resource.Timestamp(key.Retires)), resource.NewAgencyKey(key))
}

// revoke answers POST /admin/agencies/{agency}/keys/{key}/revoke.
func (k agencyKeys) revoke(c *call) error {
	agency, err := k.agency(c)
	if err != nil {
		return err
	}
	key, exists, err := k.registry.Revoke(c.ctx(), agency, c.Param("key"), c.author())
	switch {
	case err != nil:
		return err
	case !exists:
		return noSuchKey(c, "")
	}
	return c.answer(fmt.Sprintf("The key %s is revoked.", key.ID), resource.NewAgencyKey(key))
}
