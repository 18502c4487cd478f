module github.com/sojourn/sojourn/adapters/go

go 1.19
