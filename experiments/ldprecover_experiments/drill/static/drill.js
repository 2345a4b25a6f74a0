// Tells the page of one more view. It runs before the page's own script, which then shows it among the others.

import { VIEWS } from "/page/js/views/index.js";

VIEWS.push({ path: "drill", label: "Drill", title: "A drill", load: () => import("./view.js") });
