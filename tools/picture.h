/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Picture of a fused graph: what stands where. Two levels of layout: the nodes of each kernel in a box of its own, then boxes, inputs,
 * outputs and framework nodes. Units are SVG's pixels.
 */
#pragma once

#include "compiler/driver/driver.h"
#include "tools/layout.h"

#define AF_PICTURE_MAX_NODES 4000u

enum af_shape_kind {
        AF_SHAPE_KIND_INPUT,
        AF_SHAPE_KIND_OUTPUT,
        AF_SHAPE_KIND_CONSTANT,
        AF_SHAPE_KIND_OP,
        AF_SHAPE_KIND_FRAMEWORK,
        AF_SHAPE_KIND_VIEW,
        AF_SHAPE_KIND_KERNEL,
        AF_SHAPE_KIND_PORT /* not drawn */
};
#define AF_PICTURE_MAX_LINES 5
struct af_picture_shape {
        enum af_shape_kind kind;
        double x, y, w, h;
        const char *lines[AF_PICTURE_MAX_LINES]; /* the first is the title */
        uint32_t n_lines;
        const char *tip; /* shown when pointed at; may be NULL */
        uint32_t colour; /* KERNEL and its OPs: palette number */
};
struct af_picture_curve {
        const double *points; /* as af_layout_edge */
        uint32_t n_points;
        double dx, dy; /* to be added to the points */
        bool arrow;
};
struct af_picture {
        struct af_arena *arena;
        const char *title, *subtitle;
        struct af_picture_shape *shapes; /* in the order to draw: kernels first */
        struct af_picture_curve *curves;
        uint32_t n_shapes, n_curves, cap_shapes, cap_curves;
        double width, height;
        bool has_framework, has_views;
};

/*
 * Lays a planned graph out. names: the sender's node names and origins are in the graph already (see af_view_name). Everything lives in
 * arena. 0, -ENOMEM, -E2BIG: more nodes than AF_PICTURE_MAX_NODES.
 */
int af_picture_make(struct af_arena *arena, const struct af_driver_view *view, struct af_picture *ret_picture) AF_WARN_UNUSED;
/* The picture as an SVG document. */
void af_picture_svg(const struct af_picture *picture, struct af_buf *out);
/* Width of a text in the font that the SVG asks for, by class of character; size in pixels. */
double af_picture_text_width(const char *text, double size, bool bold);
