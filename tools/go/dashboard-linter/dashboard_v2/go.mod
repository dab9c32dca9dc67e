module github.com/grafana/grafana/apps/dashboard

go 1.26
