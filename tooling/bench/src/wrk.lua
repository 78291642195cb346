-- One thread of wrk: the plants of population.ts, and every answer checked.
local bit = require('bit')
local byte, find, format = string.byte, string.find, string.format

local threads = {}

function setup(thread)
  thread:set('index', #threads)
  threads[#threads + 1] = thread
end

local kind, seed, mask, half, readable, first, step, path
local get, post

local function id(ordinal)
  local x = bit.band(ordinal + seed, mask)
  x = bit.band(x * 0x9e3779b97f4a7c15ULL, mask)
  x = bit.bxor(x, bit.rshift(x, half))
  x = bit.band(x * 0xbf58476d1ce4e5b9ULL, mask)
  x = bit.bxor(x, bit.rshift(x, half))
  return tostring(x):sub(1, -4) -- without "ULL"
end

local function create()
  local ordinal = first + step * made
  made = made + 1
  local sort = ordinal % 20
  local tag = ''
  if sort < 2 then
    tag = ',"tag":"common"'
  elseif sort < 16 then
    tag = format(',"tag":"tag-%d"', sort)
  end
  local body = format('{"id":%s,"name":"Plant %d"%s}', id(ordinal), ordinal, tag)
  return format(post, #body, body)
end

local function read()
  return format(get, '/plants/' .. id(math.random(0, readable - 1)))
end

local kinds = {
  creates = create,
  reads = read,
  lists = function()
    return format(get, '/plants?limit=100&after=' .. id(math.random(0, readable - 1)))
  end,
  mixed = function()
    turn = turn + 1
    if turn % 5 == 0 then return create() end
    return read()
  end,
  path = function()
    return format(get, path)
  end,
}

function init(args)
  made, created, refused, refusal, turn = 0, 0, 0, '', 0
  kind = args[1]
  seed = tonumber(args[2])
  half = math.floor(tonumber(args[3]) / 2)
  mask = bit.lshift(1ULL, tonumber(args[3])) - 1ULL
  readable = tonumber(args[4])
  first = tonumber(args[5]) + index
  step = tonumber(args[6])
  path = args[8]
  math.randomseed(first)
  local head = ' HTTP/1.1\r\nHost: ' .. wrk.host .. ':' .. wrk.port .. '\r\nAuthorization: Bearer ' .. args[7]
  get = 'GET %s' .. head .. '\r\n\r\n'
  post = 'POST /plants' .. head .. '\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s'
  request = kinds[kind]
end

-- The answer to a create has no id, the answer to a read has one.
function response(status, _, body)
  if status ~= 200 then
    refused = refused + 1
    refusal = status .. ' ' .. body:gsub('[^%w%p ]', '?'):gsub('["\\]', "'")
  elseif kind == 'creates' or (kind == 'mixed' and not find(body, '"id":', 1, true)) then
    created = created + 1
  end
end

function done(summary, latency)
  local sum = { made = 0, created = 0, refused = 0 }
  local refusal = ''
  for _, thread in ipairs(threads) do
    sum.made = math.max(sum.made, thread:get('made'))
    sum.created = sum.created + thread:get('created')
    sum.refused = sum.refused + thread:get('refused')
    if thread:get('refusal') ~= '' then refusal = thread:get('refusal') end
  end
  local errors = summary.errors
  io.write(
    format(
      '\n{"requests":%d,"microseconds":%d,"p50":%d,"p99":%d,"made":%d,"created":%d,"refused":%d,"refusal":"%s","broken":%d}\n',
      summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
      sum.made, sum.created, sum.refused, refusal,
      errors.connect + errors.read + errors.write + errors.timeout
    )
  )
end
