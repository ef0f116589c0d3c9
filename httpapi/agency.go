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
	"motorpool/httpapi/errorcode"
	"motorpool/httpapi/request"
	"motorpool/httpapi/resource"
	"motorpool/rental"
	"motorpool/telematics"
)

// agencies answers with agencies and their stations.
type agencies struct{ *server }

func (a agencies) list(c *request.Call) error {
	return listOfAgency(
		c, "agencies", "agency", a.Agencies.Agencies, func(a telematics.ListedAgency) int64 { return int64(a.ID) },
		resource.NewAgency,
	)
}

func (a agencies) stations(c *request.Call) error {
	return listOfAgency(
		c, "stations", "station", a.Agencies.ListStations, func(s telematics.Station) int64 { return int64(s.ID) },
		resource.NewStation,
	)
}

func (a agencies) stationsOfClient(c *request.Call) error {
	found, err := a.Agencies.ListStations(c.Ctx(), telematics.AgencyQuery{Agency: c.Actor.Agency})
	if err != nil {
		return err
	}
	body := resource.List(found, resource.NewStation)
	return c.AnswerTagged(request.TagOf(body), request.Plural(len(body), "station"), body)
}

// listOfAgency answers with a page of a list of the agency in the query, or of all agencies.
func listOfAgency[T, B any](
	c *request.Call, list, thing string, read func(context.Context, telematics.AgencyQuery) ([]T, error),
	position func(T) int64, body func(T) B,
) error {
	p := c.Page(list)
	found, err := read(c.Ctx(), telematics.AgencyQuery{Agency: c.QueryAgency(), Page: p.Query()})
	if err != nil {
		return err
	}
	listed, meta := request.Cut(p, found, position)
	return c.AnswerWith(http.StatusOK, request.Plural(len(listed), thing), resource.List(listed, body), meta)
}

// agencyKeys answers with the keys of agencies, and changes them.
type agencyKeys struct{ *server }

// pathAgency returns the agency that the path names. An agency that the caller may not see is
// reported as missing.
func pathAgency(c *request.Call) (telematics.AgencyID, error) {
	agency := telematics.AgencyID(c.PathInteger("agency"))
	if agency == 0 || !c.Actor.Sees(agency) {
		return 0, telematics.NoSuchAgency(agency)
	}
	return agency, nil
}

func noSuchKey(c *request.Call, more string) error {
	return &telematics.Error{
		Code:    errorcode.AgencyKeyNotFound,
		Message: fmt.Sprintf("There is no key %s of agency %s%s.", c.Param("key"), c.Param("agency"), more),
	}
}

func (k agencyKeys) list(c *request.Call) error {
	agency, err := pathAgency(c)
	if err != nil {
		return err
	}
	all, err := k.AgencyKeyRegistry.List(c.Ctx())
	if err != nil {
		return err
	}
	keys := slices.DeleteFunc(slices.Clone(all), func(key rental.AgencyKey) bool { return key.Agency != agency })
	if len(keys) == 0 { // an agency without keys, or none
		found, err := k.Agencies.Agencies(c.Ctx(), telematics.AgencyQuery{Agency: agency, Page: telematics.Page{Limit: 1}})
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return telematics.NoSuchAgency(agency)
		}
	}
	return c.Answer(request.Plural(len(keys), "key"), resource.List(keys, resource.NewAgencyKey))
}

// add answers POST /admin/agencies/{agency}/keys. It refuses an agency that got rental.NewKeysADay
// keys within a day.
func (k agencyKeys) add(c *request.Call) error {
	agency, err := pathAgency(c)
	if err != nil {
		return err
	}
	ctx, cancel := c.Detached(k.ReadBudget)
	defer cancel()
	key, exists, err := k.AgencyKeyRegistry.Add(ctx, agency, c.Author())
	switch {
	case errors.Is(err, rental.ErrKeysUsedUp):
		return c.OverLimit(rental.NewKeysADay, time.Hour, "The limit of %d new keys a day for agency %d is used up.", agency)
	case err != nil:
		return err
	case !exists:
		return telematics.NoSuchAgency(agency)
	}
	time.Sleep(k.KeysWithin)
	return c.AnswerWith(
		http.StatusCreated, fmt.Sprintf("The key %s was made. Its secret is shown only once.", key.ID),
		resource.AgencyKeyWithSecret{AgencyKey: resource.NewAgencyKey(key), Secret: hex.EncodeToString(key.Secret)}, nil,
	)
}

func (k agencyKeys) retire(c *request.Call) error {
	agency, err := pathAgency(c)
	if err != nil {
		return err
	}
	until := c.Time("until")
	if !until.After(c.Now()) {
		return contract.Invalid("until", "must be in the future; revoke ends a key now")
	}
	ctx, cancel := c.Detached(k.ReadBudget)
	defer cancel()
	key, exists, err := k.AgencyKeyRegistry.Retire(ctx, agency, c.Param("key"), until, c.Author())
	switch {
	case err != nil:
		return err
	case !exists:
		return noSuchKey(c, ", or it is revoked")
	}
	time.Sleep(k.KeysWithin)
	return c.Answer(fmt.Sprintf("The key %s is valid until %s.", key.ID, resource.Timestamp(key.Retires)), resource.NewAgencyKey(key))
}

func (k agencyKeys) revoke(c *request.Call) error {
	agency, err := pathAgency(c)
	if err != nil {
		return err
	}
	ctx, cancel := c.Detached(k.ReadBudget)
	defer cancel()
	key, exists, err := k.AgencyKeyRegistry.Revoke(ctx, agency, c.Param("key"), c.Author())
	switch {
	case err != nil:
		return err
	case !exists:
		return noSuchKey(c, "")
	}
	time.Sleep(k.KeysWithin)
	return c.Answer(fmt.Sprintf("The key %s is revoked.", key.ID), resource.NewAgencyKey(key))
}
