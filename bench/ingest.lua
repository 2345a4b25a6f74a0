-- wrk script: POST one body again and again, each time under a fresh Idempotency-Key.
-- arguments: BODY_FILE CONTENT_TYPE REQUESTS_PER_SECOND_PER_CONNECTION (0: as fast as answers come) KEY PATH...
local counter = 0

function setup(thread)
  thread:set("number", counter)
  counter = counter + 1
end

function init(args)
  local file = assert(io.open(args[1], "rb"))
  body = file:read("*a")
  file:close()
  rate = tonumber(args[3])
  math.randomseed(os.time() * 1000 + number)
  prefix = string.format("%08x%08x%02x", os.time(), math.random(0, 2 ^ 31 - 1), number)
  sent = 0
  wrk.headers["Content-Type"] = args[2]
  if args[4] ~= "" then wrk.headers["Authorization"] = "Bearer " .. args[4] end
  paths = {unpack(args, 5)}
  if rate > 0 then
    -- Poisson arrivals on each connection, in milliseconds.
    delay = function() return math.floor(-math.log(1 - math.random()) / rate * 1000) end
  end
end

function request()
  sent = sent + 1
  wrk.headers["Idempotency-Key"] = prefix .. string.format("%010x", sent)
  return wrk.format("POST", paths[sent % #paths + 1], nil, body)
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format('{"requests": %d, "seconds": %.6f, "p99_ms": %.4f, "refused": %d, "broken": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(99) / 1e3,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
