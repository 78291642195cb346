-- One thread of wrk. Arguments: `create`, or a path with %s for the id of a stored plant; the number of stored plants;
-- the number of the first plant to create; the token. The plants are those of plants.ts.
local bit = require('bit')
local format = string.format
local mask = bit.lshift(1ULL, 52) - 1ULL
local threads = 0

function setup(thread)
  thread:set('index', threads)
  threads = threads + 1
end

local function id(number)
  return tostring(bit.band(number * 0x9e3779b97f4a7ULL, mask)):sub(1, -4) -- without "ULL"
end

function init(args)
  local what, stored, number, token = args[1], tonumber(args[2]), tonumber(args[3]) + index * 1000000, args[4]
  local head = format(' HTTP/1.1\r\nHost: %s:%s\r\nAuthorization: Bearer %s\r\n', wrk.host, wrk.port, token)
  local post = 'POST /plants' .. head .. 'Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s'
  local get = 'GET ' .. what .. head .. '\r\n'
  math.randomseed(number)

  local function create()
    local body = format('{"id":%s,"name":"Plant %d","tag":"tag-%d"}', id(number), number, number % 20)
    number = number + 1
    return format(post, #body, body)
  end
  local function read()
    return format(get, id(math.random(0, stored - 1)))
  end
  request = what == 'create' and create or read
end

function done(summary, latency)
  local errors = summary.errors
  io.write(format(
    '\n{"requests":%d,"perSecond":%f,"p50Ms":%f,"p99Ms":%f,"failed":%d}\n',
    summary.requests, summary.requests / summary.duration * 1e6,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000,
    errors.status + errors.connect + errors.read + errors.write + errors.timeout
  ))
end
