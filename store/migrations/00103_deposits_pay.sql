-- +goose Up

-- What an ended rental owes, and whose payment was refused, its deposit pays: then the payment is taken back. The rows that
-- there are fulfil the constraint before, which is narrower.
alter table charges drop constraint charges_goal_of_deposits;
alter table charges add constraint charges_goal_of_deposits
    check ((goal is not null) = (kind = 'deposit') or kind in ('start', 'extension', 'end') and goal = 'release') not valid;
