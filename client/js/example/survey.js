// A survey of one question, on any web server:
//
//     survey.html?server=https://reports.example.org&round=lunch
//
// The server must list the page's origin in LDPRECOVER_CORS_ORIGINS. A ticket may follow: &ticket=….
import { AlreadyReportedError, Reporter, UnansweredError } from "../ldprecover.js";

const query = new URLSearchParams(location.search);
const options = { ticket: query.get("ticket") };
const [promise, form, items, status] = ["promise", "form", "items", "status"].map((id) =>
  document.getElementById(id),
);

function choice(label) {
  const input = Object.assign(document.createElement("input"), {
    type: "radio",
    name: "item",
    value: label, // an index would mean a number in a round for numbers
    required: true,
  });
  const line = document.createElement("label");
  line.append(input, label);
  return line;
}

function message(error) {
  if (error instanceof AlreadyReportedError)
    return "This browser has reported already. A second report would tell more of you.";
  if (error instanceof UnansweredError)
    return "No answer yet. Your report is kept here: press again, and the same one is sent.";
  return [error.message, error.note].filter(Boolean).join(": ");
}

async function start() {
  const reporter = new Reporter(
    query.get("server") ?? location.origin,
    query.get("round") ?? "current",
    options,
  );
  const round = await reporter.round();
  const times = Math.exp(round.epsilon).toFixed(1);
  promise.textContent =
    "Your answer is changed at random on this device before it is sent. Whatever is sent would be " +
    `at most ${times} times as likely under this answer as under any other.`;
  const shown = round.items.filter((_, index) => !round.canaries.includes(index)).map(choice);
  items.append(...shown);
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    status.textContent = "Reporting.";
    try {
      await reporter.report(new FormData(form).get("item"));
      status.textContent = "Thank you: your report is counted.";
    } catch (error) {
      status.textContent = message(error);
    }
  });
}

start().catch((error) => {
  promise.textContent = message(error);
});
