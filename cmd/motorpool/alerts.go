package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

type alerts struct {
	List        alertList   `cmd:"" default:"withargs" help:"List alerts, the latest first."`
	Acknowledge acknowledge `cmd:"" help:"Note that you have seen an alert."`
	Rules       alertRules  `cmd:"" help:"Show the rules of an agency, or set them."`
}

type alertList struct {
	listing
	State    string `env:"-" enum:"open,cleared,any" default:"open" placeholder:"STATE" help:"open, cleared or any."`
	Severity string `env:"-" placeholder:"SEVERITY" help:"Only of this severity: info, warning or critical (default any)."`
	Rule     string `env:"-" placeholder:"NAME" help:"Only of this rule, such as left_open (default any)."`
	Vehicle  string `env:"-" placeholder:"N|PLATE" help:"Only of this vehicle (default any)."`
	Agency   string `env:"-" placeholder:"N" help:"Only of this agency (default all)."`
}

func (a alertList) Run(ctx context.Context) error {
	query := a.query()
	if err := a.setVehicle(ctx, query, a.Vehicle); err != nil {
		return err
	}
	if a.State != "any" {
		query.Set("state", a.State)
	}
	set(query, "severity", a.Severity)
	set(query, "rule", a.Rule)
	set(query, "agency_id", a.Agency)
	return a.print(ctx, "alerts", query, []column{
		"ID id", "OPENED opened_at", "CLEARED cleared_at", "SEVERITY severity", "SUMMARY summary",
		"HELD BY holder.client", "SEEN BY acknowledged_by", "NOTE note",
	})
}

type acknowledge struct {
	remote
	ID   string `arg:"" help:"Id of the alert."`
	Note string `env:"-" placeholder:"TEXT" help:"For colleagues, and the audit log."`
}

func (a acknowledge) Run(ctx context.Context) error {
	body := map[string]string{}
	if a.Note != "" {
		body["note"] = a.Note
	}
	return a.call(ctx, http.MethodPost, "alerts/"+url.PathEscape(a.ID)+"/acknowledge", body)
}

type alertRules struct {
	remote
	Agency int64  `arg:"" help:"Number of the agency."`
	Set    string `env:"-" placeholder:"FILE" help:"${rules_set}."`
}

func (a alertRules) Run(ctx context.Context) error {
	method, path := http.MethodGet, fmt.Sprintf("agencies/%d/alert-rules", a.Agency)
	var body any
	if a.Set != "" {
		text, err := readFile(ctx, "--set", a.Set)
		if err != nil {
			return err
		}
		if !json.Valid(text) {
			return badUsage("--set: %s is not JSON", a.Set)
		}
		method, body = http.MethodPut, json.RawMessage(text)
	}
	e, err := a.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	if a.wantsTable() {
		var data struct{ Rules json.RawMessage }
		if err := json.Unmarshal(e.Data, &data); err != nil {
			return fmt.Errorf("read rules: %w", err)
		}
		e.Data = data.Rules
	}
	return a.show(e, []column{"RULE rule", "ENABLED enabled", "FOR (S) for_s", "LEVELS levels"})
}
